// Long reductions of few rows in two stages: a result for each part of a row, then a reduction of those.
// Equal up to the rounding of sums in another order.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// `anywhere`: parts of equal length; else between the dimensions of what is reduced. Rows that programs share
// (tile.h) stay whole.
void split_long_rows(Graph& graph, const Target& target, bool anywhere);

}  // namespace nereid::compiler
