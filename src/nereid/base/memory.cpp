#include "nereid/base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace nereid {
namespace {

int64_t number_in(const char* path) {
  int64_t value = -1;
  std::ifstream(path) >> value;
  return value;
}

// Of a table of names and numbers; 0 where it is not there.
int64_t field_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + " ") || line.starts_with(name + ":"))
      return std::stoll(line.substr(name.size() + 1));
  return 0;
}

}  // namespace

int64_t available_memory() {
  const int64_t available = field_of("/proc/meminfo", "MemAvailable") * 1024;
  const int64_t most = number_in("/sys/fs/cgroup/memory.max"),
                used = number_in("/sys/fs/cgroup/memory.current");
  if (most <= 0 || used < 0) return available;
  // Cached files count as used, and go where memory is needed.
  const int64_t left =
      std::max<int64_t>(0, most - used + field_of("/sys/fs/cgroup/memory.stat", "inactive_file"));
  return available > 0 ? std::min(available, left) : left;
}

}  // namespace nereid
