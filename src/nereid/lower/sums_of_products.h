// Sums through products, and sums of sums (algebra.h).
#pragma once

#include "nereid/lower/choices.h"
#include "nereid/lower/graph.h"

namespace nereid::lower {

// How many live nodes read each tensor, and once more where it is a result.
std::vector<int> reader_counts(const Graph& graph);

// One sweep over the graph; true where something was rewritten.
bool push_sums(Graph& graph, const Target& target);

}  // namespace nereid::lower
