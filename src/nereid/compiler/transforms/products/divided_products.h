// Products whose halves are read apart: a gated unit's linear layer makes its gate and what it gates side by
// side, u, g = linear(x).chunk(2, -1). Each half becomes a product of its own, with a part of the right
// factor. One kernel then makes both (twin_products.h), and what follows them is computed on its tile.
//
// Precondition: maps of the halves meet in a map, nothing reads both halves at once, and no result is read
// from the whole.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

void divide_products(Graph& graph);

}  // namespace nereid::compiler
