// A program as drawn: steps, the sizes they do away with, and the shapes of its results. All else follows.
#pragma once

#include <array>
#include <vector>

#include "nereid/ops/window.h"
#include "nereid/synth/sample/space.h"
#include "nereid/synth/write/natural.h"

namespace nereid::synth {

struct SampledStep {
  const ops::Operator* op = nullptr;
  Transition transition;
  // Of a branch: what comes before it waits until the step after the branch, which is one less deep, joins
  // both.
  uint8_t depth = 0;
  std::array<int32_t, ops::kMaxInner> inner{};
  ops::LayerOptions details{};  // drawn apart (layer_options.h)
  bool operator==(const SampledStep&) const = default;
};
// The step whose result step `i` takes as the current value: the one before it, or before the branch that it
// joins.
inline size_t step_before(const std::vector<SampledStep>& steps, size_t i) {
  size_t before = i - 1;
  if (steps[i].transition.feed.b >= 0)
    while (steps[before].depth > steps[i].depth) --before;
  return before;
}
// How many steps the branch has that nothing joins: the last ones, whose value is a second result with the
// one that waits. 0: there is none.
inline size_t open_end(const std::vector<SampledStep>& steps) {
  size_t count = 0;
  while (count < steps.size() && steps[steps.size() - 1 - count].depth > 0) ++count;
  return count;
}
struct SampledProgram {
  std::vector<SampledStep> steps;
  ops::Shape result;   // of the last step
  ops::Shape waiting;  // of the value that waits for a branch that nothing joins, where there is one
  bool operator==(const SampledProgram&) const = default;
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
