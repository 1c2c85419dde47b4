// How many taps of a convolution's window the programs of a batch go over.
//
// A class of a transposed convolution's places (import_contraction.cpp) sees every stride-th tap of the
// window: of 3 x 3 at stride 2 one, two, two or four. The sum has as many taps as the largest class sees, and
// a factor is zero where a class has fewer. A program is of one class, so its loop ends where its taps do.
#pragma once

#include <set>
#include <vector>

#include "nereid/compiler/codegen/emit.h"

namespace nereid::compiler {

struct TapLimits {
  // Of a dimension of the window: before + step * tap < end, where `before` is a program's own. Step 0: all.
  struct Limit {
    Index before = {};  // over the kernel's rows and columns
    int64_t step = 0, end = 0;
  };
  std::vector<Limit> of = {};  // each column of the kernel but the last; empty: all taps for all

  double share = 1;  // of all taps: those within the limits, on average over batches

  TapLimits(Graph& graph, const TileKernel& kernel, const Contraction& contraction);
  // A factor of the contraction without the conditions that hold for all taps within the limits.
  ExprId without_implied(ExprId factor) const;

 private:
  double share_of(const TileKernel& kernel, const Contraction& contraction) const;
  Graph& graph_;
  std::set<ExprId> implied_ = {};
};

}  // namespace nereid::compiler
