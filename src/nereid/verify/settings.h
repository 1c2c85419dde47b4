// Settings of a verification run, and of one pair of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nereid/base/deadline.h"
#include "nereid/replay/report.h"
#include "nereid/verify/pair.h"
#include "nereid/verify/rules/rules.h"

namespace nereid::verify {

// A verdict's limit, in limits of a phase.
inline constexpr double kVerdictPhases = 5;
// What decides whether outputs are right: trials and statistics of our own (docs/tolerance.md), or the check
// that KernelBench publishes. Trace, rules and safety are the same.
enum class Protocol { kNereid, kKernelBench };
std::string_view to_string(Protocol protocol);
std::optional<Protocol> protocol_from_string(std::string_view name);
inline constexpr int kKernelBenchTrials = 5;

struct Settings {
  Protocol protocol = Protocol::kNereid;
  Policy policy = Policy::kMostly;
  int trials = 3;  // on the task's own inputs under fresh seeds; each other input distribution is added once
  std::set<std::string> forbid = {};  // remarks that make a candidate Disallowed: kForbiddable
  uint64_t seed = 0;                  // everything random follows from it
  replay::Device device = replay::Device::kCpu;
  bool time = false;            // CUDA alone
  double timing_seconds = 1.5;  // for sampling
  double timing_width =
      0.02;  // of the interval of 95 % around the speedup: sampling ends where it is that narrow
  // CUDA alone: for candidates that a judge has verified, by a CPU's replays, say (Pair::trace holds them to
  // what was judged). Each is replayed on the inputs it is timed on, the timed runs among them, compared, and
  // nothing else; a reference is timed once for all of its candidates.
  bool time_only = false;
  // On the CPU: of what is Verified kernels are compiled for GPUs of this architecture (90: compute
  // capability 9.0), so that later timing finds them in the cache. 0: not. Nothing of it is in a verdict but
  // its seconds.
  int compile_for = 0;
  // A folder, of a batch with the same seed: what is Verified leaves its trace there, and with `time_only` it
  // is taken from there instead of being made again. Empty: none.
  std::filesystem::path traces = {};
  double time_limit = 30;    // seconds for each phase of the candidate (docs/deadlines.md)
  double verdict_limit = 0;  // seconds for all replays of the candidate; 0: kVerdictPhases times time_limit
  bool shrink = false;
  // Fills Verdict::without_rules, too. What would harm the replaying process is still not replayed.
  bool ignore_rules = false;
  // Of other inputs those that find the most; of tasks that take more than 256 MiB of memory one alone, and
  // one draw of their own.
  bool fast_inputs = false;
  int threads = 0;  // of one replay; 0: one for small tasks, else all cores
  replay::Tolerance tolerance{};
  Deadline deadline = Deadline::never();  // of the pair at hand

  // The pair's deadline, or how long we are ready to wait for a process of ours that may be at the
  // candidate's work for one phase: longer than that can take on a machine that is loaded.
  Deadline within_patience(double extra = 0) const {
    return Deadline::earlier(deadline, Deadline::after(4 * kMaxLimitExtension * time_limit + 120 + extra));
  }
  double whole_limit() const { return verdict_limit > 0 ? verdict_limit : kVerdictPhases * time_limit; }
};

// The run's settings, replaced by those that the pair sets itself.
Settings settings_for(const Settings& run, const Pair& pair);

}  // namespace nereid::verify
