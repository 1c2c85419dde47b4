// Sums of prefixes of long rows, in three stages, where the rows are too few to keep a GPU busy.
//
// A row is cut into chunks. The first kernel reduces each chunk; the second what is before each chunk; the
// third scans each chunk and adds that. Precondition: a scan by a sum or a product, whose results the order
// of adding does not change beyond rounding: both are taken in float64 already where they are of float32.
#pragma once

#include <set>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// A scan whose result is only flipped or permuted afterwards writes it there: there is no second kernel, and
// nothing is stored twice. Precondition: one map reads it, which is that load alone, at a place that every
// element has once; no cut (choices.h) is between them.
void write_scans_where_read(Graph& graph, const std::set<int>& cuts);

// In place; after maps are taken into their readers.
void split_long_scans(Graph& graph, const Target& target);

}  // namespace nereid::compiler
