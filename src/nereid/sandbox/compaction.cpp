#include "nereid/sandbox/compaction.h"

#include <errno.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "nereid/sandbox/outer.h"

namespace nereid::sandbox {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr int kMadviseCollapse = 25;  // MADV_COLLAPSE, newer than Debian 12's headers

}  // namespace

Compaction::Compaction() {
  std::istringstream maps(read_own_proc("maps"));
  for (std::string line; std::getline(maps, line);) {
    uint64_t first = 0, last = 0, inode = 0;
    char access[8] = {}, name[16] = {};
    const int fields = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64 " %15s",
                                   &first, &last, access, &inode, name);
    if (fields < 4 || std::strcmp(access, "rw-p") != 0 || inode != 0) continue;
    if (fields == 5 && std::strcmp(name, "[heap]") != 0) continue;
    first = (first + kHugePage - 1) / kHugePage * kHugePage;
    last = last / kHugePage * kHugePage;
    if (first < last) ranges_.emplace_back(first, last);
  }
}

bool Compaction::step() {
  while (!ranges_.empty()) {
    auto& [first, last] = ranges_.back();
    if (first == last) {
      ranges_.pop_back();
      continue;
    }
    last -= kHugePage;
    // Memory nobody has touched, or that went meanwhile, is refused at once and costs nothing; on to the
    // next.
    if (::madvise(reinterpret_cast<void*>(last), kHugePage, kMadviseCollapse) == 0) return true;
  }
  return false;
}

}  // namespace nereid::sandbox
