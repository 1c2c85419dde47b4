// Products whose parts are read apart: a gated unit's linear layer or convolution makes its gate and what it
// gates side by side, u, g = linear(x).chunk(2, -1); a cell's makes four gates. Each part becomes a product
// of its own, with a part of the factor that has the columns. One kernel then makes two of them
// (twin_products.h), and what follows them is computed on its tile.
//
// Precondition: maps of the parts, which are equal and adjacent, meet in a map; no load is of several parts,
// and no result is read from the whole. Of more than two, reading the other factor again is less than what is
// not stored.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

void divide_products(Graph& graph);

}  // namespace nereid::compiler
