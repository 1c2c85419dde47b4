// Checks of numbers on the command line, where CLI11 takes more than it should: a minus or too many digits
// for an unsigned number, "nan" for one of a range.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace nereid {

inline CLI::Validator a_seed() {
  return {[](const std::string& text) {
            uint64_t seed = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
            const bool fine = error == std::errc() && end == text.data() + text.size();
            return fine ? std::string() : "expected a whole number from 0 to 2^64 - 1, got '" + text + "'";
          },
          "UINT64"};
}

inline CLI::Validator within(double least, double most) {
  const auto range = CLI::detail::to_string(least) + " to " + CLI::detail::to_string(most);
  return {[=](const std::string& text) {
            double number = 0;
            const bool fine = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
            return fine ? std::string() : "expected a number from " + range + ", got '" + text + "'";
          },
          "FLOAT from " + range};
}

}  // namespace nereid
