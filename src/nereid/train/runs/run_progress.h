// How far a run is: its figures so far, its last step, and the time that is left.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "nereid/base/result.h"
#include "nereid/train/metrics.h"
#include "nereid/train/run_folder.h"

namespace nereid::train {

struct RunProgress {
  enum class State { kRunning, kStopped, kFinished };
  State state = State::kStopped;
  std::optional<RunProcess> process{};  // the last one
  Curves curves{};
  int64_t step = -1;             // the last one that is done; -1: none
  int64_t steps = 0;             // in all; 0: it ends with its seconds, or has no run file that can be read
  double seconds = 0;            // in all, where it ends with them; else 0
  double spent = 0;              // seconds of all steps so far
  std::optional<double> left{};  // seconds, by the last ten steps
  std::map<std::string, double> figures_of(int64_t step) const;
  double spent_until(int64_t step) const;  // seconds of the steps up to it
};
std::string_view to_string(RunProgress::State state);

// Of a run's folder, without a step where the first is not done. An error (blamed on the input): it is none.
Result<RunProgress> progress_of(const std::filesystem::path& folder);

// "40 s", "12 min", "3.5 h"
std::string duration_text(double seconds);

}  // namespace nereid::train
