// Landlock: a process gives up files, TCP, and signals to processes outside, for good. Works without any
// privilege.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::sandbox {

// The kernel's Landlock ABI; 0 where there is none.
int landlock_abi();

struct LandlockRules {
  std::vector<std::string> readable;      // trees
  std::vector<std::string> executables;   // files
  std::string writable;                   // a tree, or empty
  std::vector<std::string> devices = {};  // files, and folders of them: read, written and controlled
  // The process's own folder of /proc: read, and what is in its threads' folders written (their names, which
  // a driver sets). Holds for as long as /proc/self/task is held open.
  bool own_proc = false;
};

// Restricts the calling thread to `rules` (paths that do not exist are left out). Needs no_new_privs.
Status landlock_restrict(const LandlockRules& rules);

}  // namespace nereid::sandbox
