// What trials put into a task's inputs and parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "nereid/replay/deciding_state.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

struct DistributionContext {
  bool first = true;   // of the call's inputs: in kFar half of it is negative, the others are positive
  bool whole = false;  // ... all of it
  bool beyond_squares = false;  // in kFar every fourth row is so large that squares overflow
  // In kFar all sizes are within a quarter of each other, and so many times what they are at least otherwise.
  std::optional<double> bounded = {};
  std::vector<double> bounds = {};  // that the forward compares inputs with: rows of kClose lie at them, too
};

// Makes floating-point inputs of `kind` out of the task's own, in place. What is never negative stays so but
// in kFlipped. A single number (a temperature, a scale) becomes another one near it, or 0, 1, or what the
// kind says. False where this kind does not apply to the tensor. True in `widened` where numbers are outside
// of the range that the task's own inputs keep to: all of [0, 1], or none negative.
bool apply_distribution(at::Tensor tensor, InputDistribution kind, at::Generator generator,
                        bool* widened = nullptr, const DistributionContext& context = {});

// A parameter or buffer whose elements are all the same number (gamma = 1, beta = 0) gets distinct ones near
// it, in place; one that is next to nothing (a LayerScale of 1e-6) is brought to order one. True where it
// did.
bool perturb_constant(at::Tensor tensor, at::Generator generator);

// That, and of other tensors every element becomes U(0.75, 1.25) times itself, a zero among them N(0, (rms /
// 4)^2). Kept are: that none is negative, that none is less than one, the range [-1, 1], infinities (masks);
// and what is next to nothing as a whole is brought to order one. With NaNs it is left alone.
bool perturb(at::Tensor tensor, at::Generator generator);

// Every element times 2^u with u even in [-2, 4], by chance with the other sign where there are negative
// ones, or `any_sign`. Kept is what perturb() keeps.
// `as_trained`: a tensor of one element keeps its sign and becomes larger, for one draw shows little of it.
bool widen_state(at::Tensor tensor, bool any_sign, at::Generator generator, bool as_trained = false);

// Each element becomes what side_of() says: of few elements by a choice that begins at `first` and goes on
// with each, of more by chance. What is never negative stays so unless `any_sign`; `near_bounds`: see
// DecidingState.
bool take_sides(at::Tensor tensor, const DecidingState& state, int64_t first, bool any_sign, bool near_bounds,
                at::Generator generator);

// The largest size of a floating-point tensor's finite numbers; 0 where there are none, or where it holds
// other numbers.
double largest_size(const at::Tensor& tensor);
// Larger sizes than `most` become most (|x| / most)^(1 / 2^times), in place: what is far away comes near, in
// the same order.
void narrow(at::Tensor tensor, double most, int times);

// Numbers that an element of this floating-point tensor could as well be, within what trials keep to and far
// from most of its elements. Empty where there are none, or where the tensor holds infinities or NaNs.
std::vector<double> other_values(const at::Tensor& tensor);

}  // namespace nereid::replay
