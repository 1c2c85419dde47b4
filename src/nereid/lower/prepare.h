// What is done to a graph before its nodes are put into kernels: small windows are written out, maps are
// taken into those who read them, long reductions of few rows and products of few tiles are split in two.
#pragma once

#include <set>
#include <vector>

#include "nereid/lower/choices.h"
#include "nereid/lower/graph.h"

namespace nereid::lower {

constexpr size_t kMostPlainSteps = 12;  // calls of a kernel where fusion is plain

// `plain_fusion` as Choices says it, here and below.
void prepare(Graph& graph, const Target& target, bool split_sums, const std::set<int>& cuts = {},
             bool plain_fusion = false);

// The node goes over what it loads there as it lies, one element after the other, be it reshaped; what is
// broadcast it goes over several times. A reduction's rows and columns have an order each: a sum over the
// first of two dimensions goes element by element, too.
bool reads_in_order(const Graph& graph, const Node& node, const Expr& load);
// All that the node loads it reads in order, and it does not ask where it stands (as a triangle does, or what
// is padded).
bool is_plain(const Graph& graph, const Node& node);
// Both are of one call.
bool of_one_call(const Node& a, const Node& b);

// How many cuts lie before what the node does.
int part_of(const Node& node, const std::set<int>& cuts);

// Nodes whose result reaches one of the graph's.
std::vector<bool> live_nodes(const Graph& graph);

}  // namespace nereid::lower
