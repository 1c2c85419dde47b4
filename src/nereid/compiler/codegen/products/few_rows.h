// Products of a few rows of float32 with a long matrix whose rows are in no vectors, without tensor cores.
//
// Such a product takes as long as the matrix is read, and of single elements each costs a thread a copy to
// shared memory, a load from there and three instructions that split it for the tensor cores: 20 instructions
// an element (sm_90), of two programs a processor. Here a thread keeps the elements that it loads in
// registers and multiplies each by all rows: 11 instructions for seven rows, three programs a processor.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {

inline constexpr int64_t kMostFewRows = 8;      // sums that a thread has registers for
inline constexpr int64_t kLongFewRows = 256;    // terms
inline constexpr int64_t kManyRows = 32;        // of the matrix, of a program
inline constexpr int64_t kElementsOfARow = 32;  // of a block: one a lane
inline constexpr int kBlocksAhead = 4;  // whose elements a thread loads before it multiplies the first

// Whether the factors of a product over kM, kN and kK are such. `m`, `n`, `k`: their extents.
bool has_few_rows(const Graph& graph, ExprId left, ExprId right, int64_t m, int64_t n, int64_t k);

struct FewRows {
  ExprId left = -1, right = -1;
  int64_t m = 1, n = 1;
  bool exact = false;  // the last blocks of k end with it
  std::string begin, end;
};
// The sums of all products, as a block [BLOCK_M, BLOCK_N] of the name `total`.
void write_few_rows(ExprWriter& write, Graph& graph, KernelNames& names,
                    const std::vector<BlockDimension>& dimensions, const FewRows& of);

}  // namespace nereid::compiler
