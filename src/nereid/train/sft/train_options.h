// A run's command-line options, for every kind of run; all else is in the run file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/decoder/operators.h"
#include "nereid/train/metrics.h"

namespace nereid::train {

struct TrainOptions {
  std::string run_file;          // a path
  std::filesystem::path folder;  // the run's; empty: training/NAME
  std::string device = "auto";   // with several ranks: auto, cpu or cuda, where rank r has GPU r
  int64_t ranks = 1;             // processes of this host
  int64_t profile_step =
      -1;  // of SFT: on rank 0 a table of what this step's time went to is written to stderr
  bool accept_changes = false;  // resume with a run file that has other values than the run was begun with
  bool check = false;           // open data and model, and stop before the first step: no folder is made
  // What layers compute element by element, where it is not to be PyTorch's operators: asked once, by each
  // rank.
  std::function<Result<std::shared_ptr<lm::Operators>>(const lm::Config&, c10::Device)> operators = {};
  // Called after each step on rank 0.
  std::function<Status(int64_t step, const Figures& figures)> report = {};
};

}  // namespace nereid::train
