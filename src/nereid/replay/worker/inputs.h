// What trials put into a task's inputs and parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/report.h"

namespace nereid::replay {

// Makes floating-point inputs of `kind` out of the task's own, in place. Signs and ranges are kept: what is
// never negative stays so, what lies in [0, 1] stays there. False where this kind does not apply to the
// tensor.
bool apply_kind(at::Tensor tensor, InputKind kind, at::Generator generator);

// A parameter whose elements are all the same number (gamma = 1, beta = 0) gets distinct ones near it, in
// place. True where it did.
bool perturb(at::Tensor tensor, at::Generator generator);

// Numbers that an element of this floating-point tensor could as well be, within what trials keep to and far
// from most of its elements. Empty where there are none, or where the tensor holds infinities or NaNs.
std::vector<double> other_values(const at::Tensor& tensor);

// Moves every element by up to half a unit in the last place of `was`, up or down, in place.
void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator);

// Rounds every float64 element that `was` cannot hold to one of its neighbours there, up or down by chance, in
// place: what an operator in that dtype may as well have made.
void round_by_chance(at::Tensor tensor, trace::DType was, at::Generator generator);

// Moves every float64 element that `was` cannot hold by up to half of its unit in the last place there, evenly
// distributed, in place: the error of rounding, drawn anew.
void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator);

}  // namespace nereid::replay
