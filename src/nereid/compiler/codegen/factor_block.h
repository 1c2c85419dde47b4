// Which factor of a product is the right one, and how a block of a factor is loaded.
//
// Triton copies elements that are not of aligned vectors to shared memory across the dimension along which
// they are adjacent, so that those of a warp go to one bank of 32. As one row of elements they go next to
// each other.
//
// The tensor cores read a right factor of 32-bit elements from shared memory with those along k adjacent.
// What registers hold along n instead, four elements a thread, is stored to two banks at a time.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {

struct FactorBlock {
  bool left = true;     // [BLOCK_M, BLOCK_K], else [BLOCK_K, BLOCK_N]
  bool flat = false;    // loaded as one row of elements
  bool along_k = true;  // of one row: adjacent elements are along k, else along m or n
  bool single = false;  // of one row: an element a thread, also where those that are adjacent are aligned

  // The indices along k, or along m or n, from 0.
  std::string range(bool of_k) const;
  // What is loaded, or computed from that, as the block that is multiplied; `whole`: it depends on both of
  // the block's dimensions.
  std::string shaped(const std::string& value, bool whole) const;
};

// Of k: what is before `begin` or from `end` on is multiplied by zero in every element of a program's tile,
// as in a product with a triangle. Empty where nothing is known.
struct Reach {
  std::vector<std::string> begin = {}, end = {};
};
struct OwnBlock {
  int dimension = 0;  // of the factor alone
  int64_t count = 1, block = 1;
  const char* first = "";  // the name of a tile's first
};
// Where `factor` is where(low <= +-k +- own + c < high, ..., 0), and there are `terms` of k.
void reach_of(const Graph& graph, ExprId factor, const OwnBlock& own, int k, int64_t terms, Reach& reach);

// The bounds of a loop over k, in blocks, of which there are `terms`.
std::pair<std::string, std::string> bounds_of(ExprWriter& write, const Reach& reach,
                                              const std::string& terms);

// A sum of what a factor is made of, which its product's loop adds up, too (factor_sums.h).
struct FactorSum {
  TensorId out = -1;
  ExprId body = -1;
  bool left = true;        // of the left factor's rows
  std::string block = {};  // the name of its parts, a block as the factor's

  std::string zeros() const;
  std::string total() const;  // of each row, as wide as a block of results
};

// Of a factor over dimensions `own` and `k`: flat where it loads float32 that is adjacent along one of them
// and in no vectors.
FactorBlock factor_block(const Graph& graph, ExprId factor, bool left, int own, int k);

// Along what a factor's loads of float32 have adjacent elements. Neither: halves, rows at no vector's places,
// what is gathered.
enum class Adjacent : uint8_t { kNeither, kSum, kOwn };
Adjacent adjacent_along(const Graph& graph, ExprId factor, const std::vector<int>& own, int k);

// How far a factor's loads may go along `own` inside of their tensors; nothing where that is unknown.
std::optional<Size> loaded_extent(const Graph& graph, ExprId factor, int own);

// where(the place is in the tensor, load, 0) is what a load gives whose mask says so.
std::optional<ExprId> bare_load(const Graph& graph, ExprId id);

// What a factor was before it was widened.
DType factor_type(const Graph& graph, ExprId factor);

// What a writer has written before its loop, and the loop's body, without a header.
std::pair<std::vector<std::string>, std::vector<std::string>> loop_halves(ExprWriter& write);

}  // namespace nereid::compiler
