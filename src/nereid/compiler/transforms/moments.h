// Sums that make a variance (Reducer::moments): the rough mean, what the distances from it still sum to, and
// the sum of their squares.
//
// Of a row in parts, the moments follow from those of the parts, each about its own mean (Chan, Golub and
// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979): the row is
// read once, and what its parts have is exchanged once.
#pragma once

#include <optional>
#include <vector>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

struct Moments {
  TensorId rough = -1, rest = -1, squares = -1;
  ExprId element = -1;              // of the row
  ExprId share = -1, divisor = -1;  // constants: what elements of a mean and squares are multiplied with
};

// rough = sum of element * share; rest = sum of (element - rough) * share; squares = sum of
// (element - rough) * divisor * (element - rough). All of one row, in float32, and of several elements.
std::vector<Moments> moments_in(const Graph& graph, const std::vector<const Node*>& nodes);

}  // namespace nereid::compiler
