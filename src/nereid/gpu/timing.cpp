#include "nereid/gpu/timing.h"

#include <algorithm>

namespace nereid::gpu {
namespace {

Status take(TimedProgram& program, LaunchMode mode, int count, std::vector<double>& samples) {
  NEREID_TRY(const std::vector<double> taken, program.sample(mode, count));
  for (const double seconds : taken) {
    if (!(seconds > 0)) return our_error("the GPU's clock gave {} seconds for a run", seconds);
    samples.push_back(seconds);
  }
  return ok_status();
}

Comparison summarise(const std::vector<double>& reference, const std::vector<double>& candidate,
                     const BootstrapOptions& bootstrap) {
  Comparison result;
  result.reference_seconds = median(reference);
  result.candidate_seconds = median(candidate);
  result.speedup = result.reference_seconds / result.candidate_seconds;
  result.speedup_interval = bootstrap_ratio(reference, candidate, bootstrap);
  result.samples = static_cast<int>(std::min(reference.size(), candidate.size()));
  return result;
}

}  // namespace

Result<Comparison> compare(TimedProgram& reference, TimedProgram& candidate, LaunchMode mode,
                           const TimingOptions& options, Deadline deadline) {
  std::vector<double> reference_samples, candidate_samples;
  const Deadline budget = Deadline::after(options.budget_seconds);
  Comparison result;
  for (int round = 0;; ++round) {
    if (deadline.passed()) return our_error("timing did not end within its deadline");
    const bool reference_first = round % 2 == 0;
    TimedProgram& first = reference_first ? reference : candidate;
    TimedProgram& second = reference_first ? candidate : reference;
    auto& first_samples = reference_first ? reference_samples : candidate_samples;
    auto& second_samples = reference_first ? candidate_samples : reference_samples;
    NEREID_TRY_STATUS(take(first, mode, options.batch, first_samples));
    NEREID_TRY_STATUS(take(second, mode, options.batch, second_samples));

    const int samples = static_cast<int>(std::min(reference_samples.size(), candidate_samples.size()));
    const bool last = samples >= options.max_samples || (budget.passed() && samples >= 3);
    if (samples < options.min_samples && !last) continue;
    result = summarise(reference_samples, candidate_samples, options.bootstrap);
    result.converged = relative_width(result.speedup_interval) <= options.relative_width;
    if (result.converged || last) break;
  }
  result.reference_interval = bootstrap_median(reference_samples, options.bootstrap);
  result.candidate_interval = bootstrap_median(candidate_samples, options.bootstrap);
  return result;
}

Result<Comparison> measure(TimedProgram& candidate, double reference_seconds, LaunchMode mode,
                           const TimingOptions& options, Deadline deadline) {
  std::vector<double> samples;
  const Deadline budget = Deadline::after(options.budget_seconds);
  Comparison result;
  for (;;) {
    if (deadline.passed()) return our_error("timing did not end within its deadline");
    NEREID_TRY_STATUS(take(candidate, mode, options.batch, samples));
    const int taken = static_cast<int>(samples.size());
    const bool last = taken >= options.max_samples || (budget.passed() && taken >= 3);
    if (taken < options.min_samples && !last) continue;
    result.candidate_interval = bootstrap_median(samples, options.bootstrap);
    result.converged = relative_width(result.candidate_interval) <= options.relative_width;
    if (result.converged || last) break;
  }
  result.samples = static_cast<int>(samples.size());
  result.reference_seconds = reference_seconds;
  result.reference_interval = {reference_seconds, reference_seconds};
  result.candidate_seconds = median(samples);
  result.speedup = reference_seconds / result.candidate_seconds;
  result.speedup_interval = {reference_seconds / result.candidate_interval.high,
                             reference_seconds / result.candidate_interval.low};
  return result;
}

int input_sets(int64_t input_bytes, int64_t set_bytes, int64_t l2_bytes, int64_t free_bytes) {
  constexpr int64_t kMost = 3, kShare = 8;  // of the free memory
  if (input_bytes <= 0 || input_bytes > 4 * l2_bytes) return 1;
  return static_cast<int>(std::min(kMost, 1 + free_bytes / kShare / set_bytes));
}

int slowest_distribution(const std::vector<Comparison>& distributions) {
  int slowest = 0;
  for (int i = 1; i < static_cast<int>(distributions.size()); ++i) {
    const Comparison& other = distributions[static_cast<size_t>(i)];
    const Comparison& own = distributions[0];
    const bool beyond_noise = other.candidate_interval.low > own.candidate_interval.high;
    if (beyond_noise &&
        other.candidate_seconds > distributions[static_cast<size_t>(slowest)].candidate_seconds)
      slowest = i;
  }
  return slowest;
}

}  // namespace nereid::gpu
