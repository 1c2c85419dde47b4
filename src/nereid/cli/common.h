// What several subcommands share: durations, seeds, devices, a progress line that moves.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nereid/base/program/progress.h"
#include "nereid/base/result.h"
#include "nereid/replay/report.h"

namespace CLI {
class App;
}

namespace nereid::cli {

// --policy, --protocol, --device, --trials, --time-limit of whatever judges candidates.
struct VerificationFlags {
  std::string policy = "mostly", protocol = "nereid", device = "auto";
  int trials = 3;
  double time_limit = 30;    // seconds
  double verdict_limit = 0;  // likewise; 0: the default
  std::vector<std::string> forbid;
};
void add_verification_flags(CLI::App& command, VerificationFlags& flags);

// "90s", "15m", "1.5h", "30d", in seconds; a plain number is seconds where `plain` allows it. An error names
// the option.
Result<double> seconds_from(const std::string& text, const std::string& option, bool plain = true);

// From an interrupt to the end of a command that keeps its results as they come, at most: who waits for what
// does not come is left.
inline constexpr double kSecondsToEnd = 3;

uint64_t fresh_seed();  // exact in a JSON reader's double

// "auto", "cpu" or "cuda"; an error (blamed on the input) where there is no GPU and one was asked for.
Result<replay::Device> device_from(const std::string& name);

// Keeps a progress line moving while nothing else does; `suffix`, where there is one, ends the line.
class Ticker {
 public:
  explicit Ticker(Progress& progress, std::function<std::string()> suffix = {});

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace nereid::cli
