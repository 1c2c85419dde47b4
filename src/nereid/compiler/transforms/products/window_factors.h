// Products of what a window gives, in one kernel: a depthwise convolution and the pointwise one after it.
//
// The factor is computed where the product reads it, with the maps between (a norm, an activation), in
// registers: neither stored, nor written again with its channels last. Each of its elements is computed once,
// because a program makes all that the other factor has of its own.
//
// Precondition: a contraction over one dimension, one factor a load of a result that nothing else reads and
// that a small window's sum makes, by maps or not; the other factor's own dimensions have at most
// kMaxWindowProducts elements.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

inline constexpr int64_t kWindow = 32;  // elements of a window that is written out
inline constexpr int64_t kMaxWindowProducts = 256;

// Marks them (Node::window_factor); before passes that write factors anew, and before maps are taken into
// their readers.
void window_factors(Graph& graph);

}  // namespace nereid::compiler
