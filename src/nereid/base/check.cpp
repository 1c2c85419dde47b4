#include "nereid/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace nereid {

void check_failed(const char* file, int line, const char* condition, const std::string& expected) {
  std::fprintf(stderr, "%s:%d: check failed: %s: expected %s\n", file, line, condition, expected.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace nereid
