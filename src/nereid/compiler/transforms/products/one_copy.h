// Tensors that a product reads in rows of channels, and something else as they are, stored once.
//
// A rounded copy in rows (channels_last.h) is what a kernel makes as it ends. Another reader of the tensor
// reads that copy, too, where the result is the same: of halves, which are copied as they are; of float32
// where all that follows is maxima, minima and choices, and then the rounding that the copy had, as a pooling
// between convolutions is. Rounding is monotone, so it may be first.
//
// Precondition: a kernel of ours makes the tensor, which is no result, and its other readers either can read
// the copy, or go over it element by element and need nothing that is made later: these join its kernel.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// After maps are taken into their readers, and concatenations are slices.
void read_copies_in_rows(Graph& graph);

}  // namespace nereid::compiler
