// Natural numbers of any length, for counts that no double decides.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace nereid::synth {

class Natural {
 public:
  Natural(uint64_t value = 0) {  // NOLINT: counts start as small integers
    if (value != 0) words_.push_back(value);
  }
  Natural& operator+=(const Natural& other);
  Natural operator*(const Natural& other) const;
  Natural shifted_by_word() const;  // times 2^64
  bool is_zero() const { return words_.empty(); }
  std::strong_ordering operator<=>(const Natural& other) const;
  bool operator==(const Natural& other) const = default;
  double to_double() const;

 private:
  std::vector<uint64_t> words_;  // least first; the last is not zero
};

}  // namespace nereid::synth
