// The learning rate's share of its peak at each step.
#pragma once

#include <cstdint>

namespace nereid::train {

struct ScheduleSettings {
  enum class Kind {
    kConstant,
    kCosine,             // half a cosine from the peak to the final share
    kWarmupStableDecay,  // the peak, then a straight line to the final share over the last `decay_steps`
  };
  Kind kind = Kind::kCosine;
  int64_t steps = 0;         // in all
  int64_t warmup_steps = 0;  // a straight line up to the peak; part of `steps`
  int64_t decay_steps = 0;   // kWarmupStableDecay alone
  double final_share = 0.1;  // of the peak, at the last step
  double seconds = 0;        // of steps: a run that ends with them; 0: with `steps`
};

// For step 0 to steps - 1. The first step of a warm-up of w has 1 / w, its last has 1; the last step of all
// has `final_share` exactly, unless nothing decays. From `steps` on it stays as it is at the last.
double learning_rate_share(const ScheduleSettings& settings, int64_t step);
// Of a run that ends with its seconds, of which `spent` were over when the step began: the warm-up goes
// by steps, the cosine by time.
double learning_rate_share(const ScheduleSettings& settings, int64_t step, double spent);
// Whether `step`, which begins after `spent` seconds, is the last one. Of a run that ends with its seconds
// that is the step after which another would be less than half done in time, if both took `latest` seconds.
bool is_last_step(const ScheduleSettings& settings, int64_t step, double spent, double latest);

}  // namespace nereid::train
