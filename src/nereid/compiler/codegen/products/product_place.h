// Which tile of a product a program makes.
#pragma once

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {

struct ProductTiles {
  Size m = 1, n = 1, batch = 1;
  int64_t tiles_m = 1, tiles_n = 1;
  bool wide = false;         // places of 64 bits
  bool interleaved = false;  // programs of other batches are next to each other (tiles/product_results.h)
};

// The indices m, n and batch of a program's results, and first_m and first_n where they start. Programs that
// share a strip of the right factor run next to each other.
void write_place(ExprWriter& write, KernelNames& names, const ProductTiles& of);

}  // namespace nereid::compiler
