// Concatenations without a copy: their parts are slices of one tensor's memory.
//
// A map that is one expression before a place along a dimension and another one after it,
//
//     y[n, c] = c < 64 ? relu(a[n, c]) : b[n, c - 64],
//
// becomes a map for each part, whose tensor is a slice of y (Tensor::slice_of). A part that follows a product
// or a reduction element by element joins that kernel, which stores it where it belongs. A part that is a
// tensor as it is, is that tensor: its maker and its readers find it in y's memory. Neighbours that follow
// nothing stay one map. What remains of y is a node without a kernel, for its readers to wait for
// (Node::parts).
//
// Precondition: the condition compares that dimension alone; the bytes that the parts save take longer than
// the launches that they add.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// Before maps are taken into their readers: a concatenation that a product or a reduction reads is not, where
// a kernel makes one of its parts.
void keep_concatenations(Graph& graph);
// After that.
void slice_concatenations(Graph& graph, const Target& target);

}  // namespace nereid::compiler
