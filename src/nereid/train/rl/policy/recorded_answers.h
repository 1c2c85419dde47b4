// Answers that another run wrote, to be written in place of what a model draws: engine, judge, clock and
// trainer have the work of real rollouts, whatever the weights are. For measurements of throughput
// (bench/rl_throughput).
#pragma once

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/train/rl/writer.h"

namespace nereid::train {

class RecordedAnswers {
 public:
  // The rollouts of a run's folder: first turns. An error (blamed on the input) where there are none.
  static Result<RecordedAnswers> read(const std::filesystem::path& folder);

  // Of a task, in the order in which they were written; an error (blamed on the input) where the run had no
  // such task.
  Result<std::vector<GivenAnswer>> of(int64_t of_class, size_t task) const;

 private:
  std::filesystem::path folder_;
  std::map<std::pair<int64_t, size_t>, std::vector<GivenAnswer>> answers_;  // by class and task
};

}  // namespace nereid::train
