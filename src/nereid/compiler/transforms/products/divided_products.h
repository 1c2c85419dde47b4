// Products whose parts are read apart: a gated unit's linear layer or convolution makes its gate and what it
// gates side by side, u, g = linear(x).chunk(2, -1); a cell's makes four gates. Each part becomes a product
// of its own, with a part of the factor that has the columns. One kernel then makes two of them
// (twin_products.h), and what follows them is computed on its tile.
//
// Maps between a product and its parts, as of its bias, are divided with it, and so are all products that
// such a map adds.
//
// Precondition: maps of the parts, which are equal and adjacent, meet in a map; no load is of several parts,
// and no result is read from the whole. Of more than two, a product makes more bytes than its factors have
// that are read for them: of few rows, those are all that counts.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

void divide_products(Graph& graph);

}  // namespace nereid::compiler
