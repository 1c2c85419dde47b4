// What a product's kernel does with the results of a tile.
#pragma once

#include <string>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {

// The dimensions that a product's indices are written in. Where windows differ (tap_limits.h): kTap and those
// after it, one for each dimension of the window.
inline constexpr int kM = 0, kN = 1, kBatch = 2, kK = 3, kTap = 4;

// Whether results of a batch lie between those of another, as the classes of a transposed convolution's
// places do: their programs run next to each other, so that lines of memory are written whole.
bool batches_interleave(const Graph& graph, const TileKernel& kernel, const Contraction& of);
// Over all of n, or m, which the tile has.
std::string reduced_on_tile(ExprWriter& write, const Graph& graph, const Member& member, ExprId body,
                            std::string value, KernelText& out);

// Whether what follows the product of a tile of so many rows and columns is long: each of eight warps has
// half.
bool has_long_epilogue(const Graph& graph, const TileKernel& kernel, int64_t m, int64_t n);

}  // namespace nereid::compiler
