#include "nereid/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nereid/base/check.h"

namespace nereid::train {
namespace {

// The cosine's, of which `done` (0 to 1) is behind.
double cosine_share(const ScheduleSettings& settings, double done) {
  return settings.final_share + (1 - settings.final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace

double learning_rate_share(const ScheduleSettings& settings, int64_t step) {
  NEREID_CHECK(step >= 0, "a step from 0, got {}", step);
  if (step < settings.warmup_steps)
    return static_cast<double>(step + 1) / static_cast<double>(settings.warmup_steps);
  using Kind = ScheduleSettings::Kind;
  if (settings.kind == Kind::kConstant) return 1;
  const int64_t decay =
      settings.kind == Kind::kCosine ? settings.steps - settings.warmup_steps : settings.decay_steps;
  const int64_t into = std::min(step, settings.steps - 1) - (settings.steps - decay) +
                       1;  // 1 at the first step below the peak
  if (into <= 0 || decay <= 0) return 1;
  const double done = static_cast<double>(into) / static_cast<double>(decay);
  if (settings.kind == Kind::kCosine) return cosine_share(settings, done);
  return settings.final_share + (1 - settings.final_share) * (1 - done);
}

double learning_rate_share(const ScheduleSettings& settings, int64_t step, double spent) {
  if (settings.seconds <= 0 || settings.kind != ScheduleSettings::Kind::kCosine ||
      step < settings.warmup_steps)
    return learning_rate_share(settings, step);
  return cosine_share(settings, std::min(spent / settings.seconds, 1.0));
}

bool is_last_step(const ScheduleSettings& settings, int64_t step, double spent, double latest) {
  return step + 1 >= settings.steps || (settings.seconds > 0 && spent + 1.5 * latest >= settings.seconds);
}

}  // namespace nereid::train
