// NEREID_TEST_TIMES: how many times as many draws random tests make; 1 by default, more in `make slow`.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace nereid {

inline uint64_t test_times() {
  const char* times = std::getenv("NEREID_TEST_TIMES");
  return times == nullptr ? 1 : std::strtoull(times, nullptr, 10);
}

}  // namespace nereid
