// The judge of a rank's answers, and its clock where answers are timed apart, as a run file configures them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "nereid/base/file.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/train/ranks/ranks.h"
#include "nereid/train/rl/judge.h"
#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/rl/scoring.h"
#include "nereid/train/sft/run_setup.h"

namespace nereid::train {

class RankJudges {
 public:
  struct Setup {
    const TrainOptions& options;
    const RlRun& run;
    const Ranks& ranks;
    at::Device device;
    const Installation& installation;
    std::filesystem::path folder{};  // of their logs
  };
  static Result<std::unique_ptr<RankJudges>> start(const Setup& setup);

  Scoring& scoring() { return *scoring_; }
  // Answers that are judged in parallel.
  int64_t jobs() const { return jobs_; }
  // Until the engine has written all: they would measure the engine.
  bool wait_for_engine() const { return wait_for_engine_; }
  // Steps that answers are written ahead of learning.
  int64_t staleness() const { return staleness_; }
  bool have_clock() const { return clock_ != nullptr; }
  int64_t restarts() const { return judge_->restarts() + (clock_ ? clock_->restarts() : 0); }

 private:
  int64_t jobs_ = 1;
  bool wait_for_engine_ = false;
  int64_t staleness_ = 0;
  std::optional<TemporaryFolder> traces_{};  // from the judge to the clock
  std::unique_ptr<AnswerJudge> judge_{}, clock_{};
  std::optional<Scoring> scoring_{};
};

}  // namespace nereid::train
