// Large float32 products on the tensor cores of float16.
//
// A factor x becomes two tensors of float16: high = fp16(s x) and low = fp16((s x - high) 2^11), with s the
// power of two that brings the largest |x| to [1, 2). high + low / 2^11 has 22 bits of every x above 2^-14 of
// the largest, and what is below loses no more than that: less than a float32 sum of many terms loses. The
// product is
//
//     sum x y = (sum high_x high_y + (sum low_x high_y + high_x low_y) / 2^11) / (s_x s_y)
//
// Tensor cores cut off where they add, so the small terms come first and the large ones in segments of
// `kSegment`, each from zero. Where a factor is infinite or NaN, the low sums are NaN and count as nothing.
//
// Rows of the two tensors begin at multiples of 16 bytes: rows of 8191 are stored as 8192, with a zero.
//
// Measured (bench/cuda.md): on an H200 3.8 times cuBLAS's fp32 at 4096^3, at 0.6 of its error.
//
// Precondition of the rewrite: a contraction of float32 whose flags do not allow TF32, large in all three
// directions, each factor one load (also where a padding's condition holds, else zero); and on the target the
// products gain more than the passes over the factors take, which a sum that is long against its result does
// not: of 256 x 256 results they would move 4.3 GB for 1.1.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

inline constexpr double kLowScale = 2048;
inline constexpr int64_t kSegment = 1024;  // terms of a sum inside the tensor cores

// In place; before maps are taken into their readers.
void split_factors(Graph& graph, const Choices& choices, const Target& target);

}  // namespace nereid::compiler
