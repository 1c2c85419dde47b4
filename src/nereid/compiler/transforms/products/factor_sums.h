// Sums of what a product's factor is made of, in the product's loop.
//
// Examples are the sum of the keys next to `k^T v`, and the squared lengths of rows next to the product that
// gives their distances. The product's programs have the elements in registers, so a kernel of the sum's own
// would read them once more. Each of the product's tiles of the other factor adds them up again, and the
// first one stores the sum where another kernel reads it.
//
// Precondition: a sum of float32 over the product's only reduced dimension, whose rows are the product's
// batches and one factor's own dimensions. What differs along both is loaded by that factor, at the same
// place, and by nothing else than products and such sums. What reads the sum reads nothing of that: it might
// hold the rows. To add up again takes less time than to read. Each side of the product fills a tile.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// What each of the sum's dimensions is among the product's; nothing where it is no sum of a factor's rows.
std::optional<std::vector<Index>> rows_of_factor(Graph& graph, const Node& product, const Node& sum);

// Moves each of them behind its product, once reductions and products are split; the tensors that they make.
std::set<TensorId> sums_of_factors(Graph& graph, const Target& target);

}  // namespace nereid::compiler
