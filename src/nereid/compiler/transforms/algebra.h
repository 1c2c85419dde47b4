// Algebra that changes what a graph costs. Equal for all finite numbers, and up to rounding; where a
// reference makes NaN of an infinity a rewrite may make a number or an infinity of it (each says where).
//
// Sums through products. sum over r of f(r) (sum over k of x y) + rest, where a dimension of r is x's alone
// or y's alone: x or y is summed first, and the product is smaller or gone. So a linear layer followed by a
// sum over its features is a product with the sum of its weights, a convolution followed by a mean over its
// area one of its input's sums for every tap (its padding being zeros that are summed like the rest), and of
// two products in a row the second comes first where that is less work. Precondition: what is between has no
// other reader, every step between is linear (sums, and products with what does not hold the first product,
// and is a number where the inputs are: no quotient of theirs), and the cost model gains. An infinite x times
// weights of both signs is NaN before, and may be an infinity after. The smaller product is not done in TF32:
// what PyTorch rounds averages out in its sum.
//
// Sums of sums are one sum, and extrema of extrema one extremum. Precondition: the first has no other reader;
// for extrema nothing but a cast is between; for sums what the first is multiplied with is a number where
// the inputs are.
//
// Scales out of products. sum over k of (s x) y is s (sum over k of x y), so that x is read as it is in
// memory. Precondition: s does not change with k; where it is a constant it is in [2^-20, 2^20], so that no
// product leaves the number range that did not; x is then an input or a parameter; s x has no other reader.
// An infinite s times an x of 0 is NaN before, and s times the sum after.
//
// Products with diagonals. sum over k of (k = f(others) ? x : 0) y is x y at that k, or 0 where f lies
// outside. Precondition: the condition is an equation with k in it once. 0 times an infinite y is NaN before,
// and does not exist after.
//
// Reductions over one element are that element.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// In place, before anything else is done to the graph; `graph.rewrites` lists what was done.
void rewrite_algebra(Graph& graph, const Target& target);

}  // namespace nereid::compiler
