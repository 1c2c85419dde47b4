// Sums through products, and sums of sums (algebra.h).
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// How many live nodes read each tensor, and once more where it is a result.
std::vector<int> reader_counts(const Graph& graph);

// One sweep over the graph; true where something was rewritten.
bool push_sums(Graph& graph, const Target& target);

}  // namespace nereid::compiler
