// The tasks that are learnt from, by class, and which one comes next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

struct Task {
  std::string source;
  std::string forward{};  // its trace summary, where known: the response prefill of a model with a prefill.md
  double weight = 1;      // how often it is drawn, relative to others of its class
};

// The weight of a task whose best known time is at its roofline.
inline constexpr double kMinWeight = 0.05;

// A file of lines, each an object with `code` (or `task`), and `forward` where there is one. The weight is
// `weight`, else what there is to win: 1 - `roofline_share` (pairs of `nereid choices`), at least
// kMinWeight; else 1.
Result<std::vector<Task>> read_tasks(const std::string& path);

// Each epoch of a class goes through all of its tasks in an order of its own, by the seed. Where the weights
// of a class differ each task is drawn by its weight instead, independently.
class TaskSource {
 public:
  // A file for each class.
  static Result<TaskSource> open(const std::vector<std::string>& files, uint64_t seed);

  // The number of the task that comes next.
  size_t next(int64_t of_class);
  const std::vector<Task>& all(int64_t of_class) const { return tasks_[static_cast<size_t>(of_class)]; }
  std::vector<uint64_t>& drawn() { return drawn_; }  // of each class, so far: what a checkpoint keeps

 private:
  uint64_t seed_ = 0;
  std::vector<std::vector<Task>> tasks_;     // by class
  std::vector<std::vector<double>> sums_{};  // of weights, up to each task; empty where all are equal
  std::vector<uint64_t> drawn_;
};

}  // namespace nereid::train
