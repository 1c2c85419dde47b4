// State that forward changes is changed by the kernel that computes it, not copied afterwards.
//
// Precondition: what is computed is no output, and no step reads the state's old value after that kernel; the
// kernel itself reads an element of it only for the same element's new value, which one program makes.
#pragma once

#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

// Sets Tensor::into.
void update_in_place(Graph& graph, const Fused& fused);

}  // namespace nereid::compiler
