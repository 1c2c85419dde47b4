// Elements that are not judged, as rounding on the way decides what they are: they become undefined.
#pragma once

#include <ATen/core/Tensor.h>

#include "nereid/replay/worker/compare/compare.h"

namespace nereid::replay {

// Whether infinities or NaNs, or integers, are among what does not agree.
bool is_odd(const Comparison& comparison);

// How many elements have another infinity or NaN than the reference's own (or a number in place of a NaN,
// with `numbers_for_nan`); these are forgotten. Not complex ones.
int64_t forget_overflown(OutputTensors& output, bool numbers_for_nan);

// Each says whether there are such elements. The tensors are float64, of the output's sizes.

// Elements that are an infinity or a NaN, and another one or a number in `rounded`, or the other way round.
bool forget_poles(OutputTensors& output, const at::Tensor& rounded);

// Elements that `moved`, the truth of inputs that were moved by half an ulp, moves by 16 of float32's ulps.
bool forget_ill_conditioned(OutputTensors& output, const at::Tensor& moved);

// Elements that are finite, and infinite in `scaled`, the truth of larger inputs.
bool forget_nearly_infinite(OutputTensors& output, const at::Tensor& scaled);

// Elements that are finite, and of which `own`, what larger inputs give in their own dtypes, has no digit of
// `truth`, what these give in float64.
bool forget_near_overflow(OutputTensors& output, const at::Tensor& own, const at::Tensor& truth);

// Elements that rounding noise moves, `moved` at the most, by more than `min_moved` times their unit: where
// the candidate errs by 64 times that at the most, or no digit is left. None where more than half are, but
// with `any_share`.
bool forget_noise_sensitive(OutputTensors& output, const at::Tensor& moved, double min_moved, bool any_share);

}  // namespace nereid::replay
