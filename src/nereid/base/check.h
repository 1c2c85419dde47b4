// Checks for a programmer's mistake: they stay in release builds and name what was expected and what came.
#pragma once

#include <fmt/format.h>

#include <string>

namespace nereid {

// Prints the place, the condition and the message to stderr, and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& expected);

}  // namespace nereid

// NEREID_CHECK(x > 0, "a positive x, got {}", x)
#define NEREID_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::nereid::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
