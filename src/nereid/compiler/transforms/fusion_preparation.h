// What is done to a graph before its nodes are put into kernels: small windows are written out, maps are
// inlined into their readers, long reductions of few rows and products of few tiles are split in two.
#pragma once

#include <set>
#include <vector>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// `fusion` as Choices says it.
void prepare(Graph& graph, const Target& target, bool split_sums, const std::set<int>& cuts = {},
             Fusion fusion = Fusion::kFree);

// How many cuts are before what the node does.
int part_of(const Node& node, const std::set<int>& cuts);

// Nodes whose result reaches one of the graph's, and random draws.
std::vector<bool> live_nodes(const Graph& graph);

}  // namespace nereid::compiler
