// Which part of a forward's work Triton does, in FLOPs and in bytes.
#pragma once

#include <set>
#include <vector>

#include "nereid/verify/analysis/dataflow.h"
#include "nereid/verify/rules/rules.h"

namespace nereid::verify {

struct WorkShares {
  double flops = 1, bytes = 1;  // Triton's parts of the work; 1 where there is none
  double bookkeeping = 0;       // the part of the counted bytes that PyTorch's work over integers moves
  bool final = true;            // false where a part depends on what a replay has yet to show
  const StepAnalysis* heavy = nullptr;    // PyTorch's first heavy step
  const StepAnalysis* largest = nullptr;  // its step of most bytes
  const StepAnalysis* counted = nullptr;  // the largest of its work over integers
};

// Over the live steps of the judged forward but `idle` launches. `free_draws`: random draws on no data are
// free, as the reference draws, too. `ran`: null before a replay.
WorkShares shares_of_work(const TraceAnalysis& candidate, const Dataflow& flow, bool free_draws,
                          const std::set<int>& idle, const std::vector<ReplayedWork>* ran);

}  // namespace nereid::verify
