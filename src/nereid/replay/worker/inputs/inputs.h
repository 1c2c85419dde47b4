// What trials put into a task's inputs and parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/report.h"

namespace nereid::replay {

// Makes floating-point inputs of `kind` out of the task's own, in place. What is never negative stays so but
// in kFlipped. A single number (a temperature, a scale) becomes another one near it, or 0, 1, or what the
// kind says. False where this kind does not apply to the tensor. True in `widened` where numbers are outside
// of the range that the task's own inputs keep to: all of [0, 1], or none negative.
bool apply_distribution(at::Tensor tensor, InputDistribution kind, at::Generator generator,
                        bool* widened = nullptr);

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
bool widen_state(at::Tensor tensor, bool any_sign, at::Generator generator);

// Numbers that an element of this floating-point tensor could as well be, within what trials keep to and far
// from most of its elements. Empty where there are none, or where the tensor holds infinities or NaNs.
std::vector<double> other_values(const at::Tensor& tensor);

// Moves every element by up to half a unit in the last place of `was`, up or down, in place.
void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator);

// Rounds every float64 element that `was` cannot hold to one of its neighbours there, up or down by chance,
// in place: what an operator in that dtype may as well have made.
void round_by_chance(at::Tensor tensor, trace::DType was, at::Generator generator);

// What `made`, a softmax of these numbers or its logarithm, may be where the maximum is taken of numbers that
// are rounded otherwise than those it is subtracted from (in another kernel, by multiply-add): exponents are
// off by half a unit in the last place of the number, either way. In place.
void move_exponents(at::Tensor made, const at::Tensor& numbers, bool logarithm, trace::DType was,
                    at::Generator generator);

// Adds `by`, one number or of `made`'s sizes, to every float64 element, or subtracts it, by chance. In place.
void move_up_or_down(at::Tensor made, const at::Tensor& by, at::Generator generator);

// Sums of so many terms that are added up in `was`, each partial sum rounded: off by half an ulp times the
// root of their number, of the size of a row (the last dimension), either way. In place.
void move_sums(at::Tensor made, double terms, trace::DType was, at::Generator generator);

// Roots of sums of squares that were computed in `was` (float32 at least): zero where the squares, divided by
// as many as 2^20 terms, may underflow there. In place.
void vanish_with_squares(at::Tensor made, trace::DType was);

// Moves every float64 element that `was` cannot hold by up to half of its unit in the last place there,
// evenly distributed, in place: the error of rounding, drawn anew.
void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator);

// A generator that draws on the tensor's device, seeded by the given one: hundreds of millions of numbers
// take a GPU a millisecond, and a CPU seconds.
at::Generator generator_on(const at::Tensor& tensor, const at::Generator& generator);

// NaN for every float64 element within 2^-6 of the largest finite number of `was`, either sign: whether it
// overflows there is a matter of rounding.
void mark_overflow(at::Tensor tensor, trace::DType was);

}  // namespace nereid::replay
