// A program as drawn: steps, the sizes they do away with, and the shape of the last result. All else follows.
#pragma once

#include <array>
#include <vector>

#include "nereid/synth/natural.h"
#include "nereid/synth/space.h"

namespace nereid::synth {

struct DraftStep {
  const ops::Operator* op = nullptr;
  Way way;
  bool branch = false;  // its result waits for the next step, which joins it
  std::array<int32_t, ops::kMaxBorn> born{};
  bool operator==(const DraftStep&) const = default;
};
struct Draft {
  std::vector<DraftStep> steps;
  ops::Shape result;
  bool operator==(const Draft&) const = default;
};

inline bool is_zero(double number) { return number == 0; }
inline bool is_zero(const Natural& number) { return number.is_zero(); }
template <typename Number>
Number number(uint64_t value) {
  if constexpr (std::is_same_v<Number, double>)
    return static_cast<double>(value);
  else
    return Number(value);
}

}  // namespace nereid::synth
