// Two products that share a factor, as the gate of a gated unit and what it gates: one kernel with a sum for
// each, over one load of the factor they share. What follows both reads neither from memory.
//
// Precondition: both have the same extents, types and precision; the factor that is shared is the left one of
// the kernel's product (factor_block.h), and the others have the same dimensions. A tile of two products
// is half as wide in each, so that shared memory is read for 1,152 cycles where the products take 1,024
// (docs/compiler.md, "Wide tiles"): what is not moved takes longer than a tenth of the products.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

// Whether the node's product is better made with that of the kernel, whose dimensions are then its own.
bool is_twin(const Graph& graph, const TileKernel& kernel, NodeId id, const Target& target);

// Of a product `body` that shares the factor `left`: its other factor.
ExprId other_factor(const Graph& graph, ExprId body, ExprId left);

}  // namespace nereid::compiler
