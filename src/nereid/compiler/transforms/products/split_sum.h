// Contractions with few output tiles and a long sum: in two stages, so that a GPU has work for all its
// processors.
//
// sum over k of x y becomes the sum over s of (sum over k' of x y at s chunk + k'): the first stage is a
// batch of `s` products, the second adds them in a fixed order (no atomics), with whatever followed the
// product. Precondition: a contraction over one long dimension at least. It is done where the cost model says
// that the time of a program that goes over all of k is more than that of a second kernel.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// In place; after maps are taken into their readers.
void split_long_sums(Graph& graph, const Target& target);

}  // namespace nereid::compiler
