// What a jailed process must not be able to do, tried by the process itself: for tests, here and on a GPU.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace nereid::sandbox {

struct Attempt {
  std::string name;
  int error = 0;           // errno; 0: it worked
  bool of_a_file = false;  // kept off by Landlock or a root of its own, not by seccomp
};

// `victim`: a process outside, as the jail's outside numbers it. Everything is tried in the calling thread,
// and so that what works does no harm.
std::vector<Attempt> run_attempts(pid_t victim);

// The names of those that worked; a file's only with `files`.
std::vector<std::string> worked(const std::vector<Attempt>& attempts, bool files = true);

}  // namespace nereid::sandbox
