// Which nodes become one kernel.
//
// Maps are inlined into their readers, so that there remain reductions, and maps that are the
// forward's results. A kernel has rows, which its programs share out, and columns, which one program goes
// over: a reduction's reduced dimensions. What follows a reduction and has its rows and columns joins its
// kernel.
#pragma once

#include <set>
#include <vector>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

struct Member {
  NodeId node = -1;
  Reduction reduction = Reduction::kNone;
  ExprId body = -1;    // over the kernel's dimensions: rows, then columns
  bool whole = false;  // its result has an element for each row and column; else one a row
  bool scan = false;
  std::vector<Index> at;  // where in its tensor the result goes, over the kernel's dimensions
  // Of a product's kernel: the rows that the member reduces in a tile that has them all, or that what it
  // reads was reduced over; its result has no such dimension.
  std::vector<int> across = {};
  bool twin = false;  // another product of the factor that the kernel's first one has on the left
};

struct TileKernel {
  Extents rows, columns;
  std::vector<Member> members;  // each after those it reads
  // Nothing but an operator that stays PyTorch's, or a tensor whose parts other kernels make: no launch.
  NodeId kept = -1;
  // Of maps of windows: what their weights do not depend on is the columns, adjacent in memory. A program has
  // a part of one row's, so that it loads each weight once.
  bool planes = false;

  Extents extents() const;
  Size row_count() const { return element_count(rows); }
  Size column_count() const { return element_count(columns); }
};

struct Fused {
  std::vector<TileKernel> kernels;  // in the order in which they run
  std::vector<bool> stored;         // of each tensor: it is written to memory
};

// Of a product: rows of one factor's own that a tile has all of, for reductions of what it makes over them.
inline constexpr int64_t kWholeSide = 256;

// What a reduction of nothing gives.
double identity(Reduction reduction);

// A sum of products of two factors, each of which has dimensions of its own.
bool is_contraction(const Graph& graph, const Node& node);
// A sum of products in TF32, or over several dimensions of halves, one at least of whose factors has
// dimensions of its own: what channels_last.h and thin_channels.h make a contraction of, be it of a
// convolution with one channel.
bool may_be_by_taps(const Graph& graph, const Node& node);

// Changes the graph's bodies: maps are inlined, long reductions of few rows are split in two.
Fused fuse(Graph& graph, const Target& target = targets()[1], bool split_sums = true,
           const std::set<int>& cuts = {}, Fusion fusion = Fusion::kFree);

}  // namespace nereid::compiler
