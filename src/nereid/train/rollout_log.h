// Every rollout of a run of reinforcement learning, with what became of it: lines of a file next to
// metrics.jsonl.
//
// rollouts.jsonl has one object a line, `step` first, steps ascending; of several ranks rank r > 0 writes
// rollouts-R.jsonl. A run that goes on from a checkpoint cuts off what came after it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::train {

struct RolloutRecord {
  int64_t step = 0;
  int64_t of_class = 0, task = 0;  // which line of which file of tasks, both counted from 0
  int64_t prompt = 0, sample = 0;  // which of the step's prompts, and which conversation about it
  int64_t turn = 0;                // which answer of the conversation
  std::string verdict{}, rule{}, reason{};
  double reward = 0;                // rule x execution
  std::optional<double> speedup{};  // of a verified one
  // Of the plan's tokens, and of the answer's last; none where the objective has no such thing.
  std::optional<double> plan_advantage{}, advantage{};
  int64_t tokens = 0, plan_tokens = 0;  // of the answer
  bool cut_off = false;                 // it did not end by itself
  std::optional<int64_t> same_as{};     // the earlier sample of this prompt and turn that has the same text
  std::string answer{};                 // as the model wrote it; empty where `same_as` is given
};

class RolloutLog {
 public:
  // Keeps the lines of the steps below `from_step`.
  static Result<RolloutLog> open(const std::filesystem::path& folder, int64_t rank, int64_t from_step);
  Status add(const std::vector<RolloutRecord>& rollouts);

 private:
  RolloutLog(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Fd fd_;
  std::filesystem::path path_;
};

// Calls `found` with each rollout of the folder, by files and lines; answers that another one has are filled
// in. A last line that was cut off is passed over; any other that is no such object is an error with its
// number. Without such a file there are none.
Status read_rollouts(const std::filesystem::path& folder,
                     const std::function<Status(RolloutRecord rollout)>& found);

}  // namespace nereid::train
