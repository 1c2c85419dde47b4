// Where a step's time goes: wall seconds of each part, and how busy the GPU was in it.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "nereid/base/deadline.h"
#include "nereid/train/metrics.h"

namespace nereid::train {

// What a rank waits for. kOther: other ranks, held-out tasks, logs, checkpoints.
enum class StepPart { kEngine, kJudge, kClock, kTrainer, kOther };
inline constexpr std::array<std::string_view, 5> kStepParts = {"engine", "judge", "clock", "trainer",
                                                               "other"};

class StepTimes {
 public:
  // A share of a GPU's time, 0 to 1, over the last moments; none where it cannot be read.
  using Utilization = std::function<std::optional<double>()>;
  // `utilization` is read every `period` seconds by a thread of its own; empty: there is no GPU.
  explicit StepTimes(Utilization utilization, double period = 0.05);
  // The GPU that this process's CUDA calls `gpu`, by NVML where that is installed; -1: none.
  static Utilization utilization_of(int gpu);
  ~StepTimes();

  // The step begins, in kOther: all sums are zero.
  void begin();
  // From now on it is this part.
  void enter(StepPart part);
  double seconds(StepPart part) const;  // since begin()

  // wall/PART, shares of the step's time that sum to 1; busy/gpu and busy/gpu_PART, the GPU's mean
  // utilization in all of it and in each part that is a hundredth of it or more.
  Figures figures();

 private:
  static constexpr size_t kParts = kStepParts.size();
  struct Readings {
    double sum = 0, count = 0;
  };
  void settle();  // the seconds of the part that it is until now

  Utilization utilization_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  StepPart part_ = StepPart::kOther;
  Stopwatch since_;  // of the part
  std::array<double, kParts> seconds_{};
  std::array<Readings, kParts> readings_{};
  std::jthread watching_;  // last: it stops before the rest goes
};

}  // namespace nereid::train
