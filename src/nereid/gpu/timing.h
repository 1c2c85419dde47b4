// Timing one program against another on the same GPU: which side is sampled when, and the statistics of
// samples. The samples come from elsewhere, so this is tested with clocks of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/gpu/statistics.h"

namespace nereid::gpu {

enum class LaunchMode {
  kGraph,
  kPlain
};  // a captured CUDA graph replayed, or every call and launch issued anew

// A program ready to run on the GPU again and again. Each sample is one run from a cold cache, everything it
// writes restored or poisoned before it, in seconds on the GPU's own clock.
class TimedProgram {
 public:
  virtual ~TimedProgram() = default;
  virtual Result<std::vector<double>> sample(LaunchMode mode, int count) = 0;
};

struct TimingOptions {
  double relative_width = 0.02;  // of the interval of the speedup: narrow enough to stop
  double budget_seconds = 1.0;   // on the GPU and off it
  int batch = 10;                // samples at a time before the other program has its turn
  int min_samples = 20, max_samples = 300;
  BootstrapOptions bootstrap = {};
};

struct Comparison {
  double reference_seconds = 0, candidate_seconds = 0;  // medians
  Interval reference_interval, candidate_interval;
  double speedup = 0;  // reference over candidate
  Interval speedup_interval;
  int samples = 0;         // of each program
  bool converged = false;  // the interval is as narrow as asked; else the budget ended first
};

// Takes turns, each round beginning with the program that came second in the one before, so that a drifting
// clock favours neither.
Result<Comparison> compare(TimedProgram& reference, TimedProgram& candidate, LaunchMode mode,
                           const TimingOptions& options, Deadline deadline = Deadline::never());

// The candidate alone against a time that is known, which then has no interval of its own.
Result<Comparison> measure(TimedProgram& candidate, double reference_seconds, LaunchMode mode,
                           const TimingOptions& options, Deadline deadline = Deadline::never());

// How many copies of a program's inputs its runs take in turn, in addition to emptying the level-2 cache
// before each: what one run left of them in any cache is not what the next one reads. One where the inputs
// push themselves out of the cache, or where there is no memory to spare. `set_bytes`: the inputs, and what a
// run makes of them.
int input_sets(int64_t input_bytes, int64_t set_bytes, int64_t l2_bytes, int64_t free_bytes);

// Which of several distributions of input values counts: the first, the task's own, unless the candidate is
// slower on another beyond what the intervals explain; then the slowest does. At least one.
int slowest_distribution(const std::vector<Comparison>& distributions);

}  // namespace nereid::gpu
