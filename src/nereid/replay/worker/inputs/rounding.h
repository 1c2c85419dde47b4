// What rounding on the way may make of a tensor's numbers, drawn anew.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// Moves every element by up to half a unit in the last place of `was`, up or down, in place.
void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator, double times = 1);

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
void flush_small_squares(at::Tensor made, trace::DType was);

// Moves every float64 element that `was` cannot hold by up to half of its unit in the last place there,
// evenly distributed, in place: the error of rounding, drawn anew.
void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator);
// By half a unit in the last place, either way, those that `was` holds exactly, but zero: what a function
// made there by chance. A few draws show how far that moves what is computed from them.
void add_noise_to_exact(at::Tensor tensor, trace::DType was, at::Generator generator);

// NaN for every float64 element within 2^-6 of the largest finite number of `was`, either sign: whether it
// overflows there is a matter of rounding.
void mark_overflow(at::Tensor tensor, trace::DType was);

}  // namespace nereid::replay
