// Supervised fine-tuning: the loop around a Trainer, from a run file to a run's folder.
#pragma once

#include <functional>
#include <memory>

#include "nereid/model/decoder/operators.h"
#include "nereid/train/metrics.h"

namespace nereid::train {

struct SftOptions {
  std::string run_file;          // a path
  std::filesystem::path folder;  // the run's; empty: training/NAME
  std::string device = "auto";   // with several ranks: auto, cpu or cuda, where rank r has GPU r
  int64_t ranks = 1;             // processes of this host
  // What layers compute element by element, where it is not to be PyTorch's operators: asked once, by each
  // rank.
  std::function<Result<std::shared_ptr<model::Operators>>(const model::Config&, c10::Device)> operators = {};
  int64_t profile_step = -1;  // on rank 0 a table of what this step's time went to is written to stderr
  // Called after each step on rank 0.
  std::function<Status(int64_t step, const Figures& figures)> tell = {};
};

// Runs to the schedule's end, or goes on from the folder's latest checkpoint. Ctrl-C leaves a checkpoint and
// is an error with Blame::kInterrupted. An error leaves whatever was done before it: the latest checkpoint,
// and where a loss is no number one of the step before it.
Status run_sft(const SftOptions& options);

}  // namespace nereid::train
