// Reinforcement learning: the loop around engine, judge and trainer, from a run file to a run's folder.
#pragma once

#include <functional>

#include "nereid/model/decoder/operators.h"
#include "nereid/train/metrics.h"

namespace nereid::train {

struct RlOptions {
  std::string run_file;          // a path
  std::filesystem::path folder;  // the run's; empty: training/NAME
  std::string device = "auto";   // with several ranks: auto, cpu or cuda, where rank r has GPU r
  int64_t ranks = 1;             // processes of this host
  // What layers compute element by element, where it is not to be PyTorch's operators.
  std::function<Result<std::shared_ptr<model::Operators>>(const model::Config&, c10::Device)> operators = {};
  // Called after each step on rank 0.
  std::function<Status(int64_t step, const Figures& figures)> tell = {};
};

// As run_sft: goes on from the folder's latest checkpoint, Ctrl-C leaves one. A fault of the judge's is no
// verdict: such rollouts are left out of their group.
Status run_rl(const RlOptions& options);

}  // namespace nereid::train
