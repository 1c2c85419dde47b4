// Starting a program with exactly the descriptors and the environment it is to have.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"

namespace nereid::sandbox {

struct SpawnSpec {
  std::vector<std::string> words;             // the program's path first
  std::vector<std::string> environment = {};  // "NAME=value"
  std::vector<std::pair<int, int>> descriptors =
      {};                    // {ours, its number there}; 0, 1, 2 are /dev/null unless named
  bool own_session = false;  // so that Ctrl-C at the terminal does not reach it
};
Result<pid_t> spawn(const SpawnSpec& spec);

// Runs a trusted program to its end and returns what it wrote to stdout, or an error with what it wrote to
// stderr. It is killed when the deadline passes, an interrupt comes, or it writes more than `max_bytes`.
Result<std::string> run_program(SpawnSpec spec, Deadline deadline, size_t max_bytes = size_t{1} << 20);

// glibc's heap in huge pages, for a program that will fork (compaction.h says what for).
inline constexpr const char* kHugeHeap = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

// This process's environment, as "NAME=value", for a child: without the passwords of the store.
std::vector<std::string> own_environment();

}  // namespace nereid::sandbox
