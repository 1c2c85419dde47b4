#include "nereid/train/rl/objective/advantages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nereid::train {

std::vector<double> advantages(std::span<const double> rewards, Baseline baseline) {
  const auto count = static_cast<double>(rewards.size());
  std::vector<double> found(rewards.size(), 0.0);
  if (rewards.size() < 2) return found;
  const double mean = std::accumulate(rewards.begin(), rewards.end(), 0.0) / count;
  double factor = 1;
  if (baseline == Baseline::kLeaveOneOut) factor = count / (count - 1);
  if (baseline == Baseline::kNormalized) {
    double squares = 0;
    for (const double reward : rewards) squares += (reward - mean) * (reward - mean);
    factor = 1 / (std::sqrt(squares / (count - 1)) + 1e-6);
  }
  // Exactly zero, not what rounding leaves of it.
  if (std::ranges::all_of(rewards, [&](double reward) { return reward == rewards.front(); })) return found;
  for (size_t i = 0; i < rewards.size(); ++i) found[i] = factor * (rewards[i] - mean);
  return found;
}

Judged judged_of(verify::VerdictKind kind, double speedup) {
  using Kind = verify::VerdictKind;
  Judged judged;
  judged.correct = kind == Kind::kVerified;
  judged.valid = kind != Kind::kMalformed && kind != Kind::kUntraceable && kind != Kind::kDisallowed &&
                 kind != Kind::kError;
  judged.speedup = !judged.correct ? 0 : speedup > 0 ? speedup : 1;
  return judged;
}

double binary_reward(const Judged& judged) { return judged.valid && judged.correct ? 1 : 0; }

SplitReward split_reward(const Judged& judged, double speedup_limit) {
  const double code = binary_reward(judged);
  return {.plan = code * std::min(judged.speedup, speedup_limit), .code = code};
}

std::vector<double> log_speed_rewards(std::span<const Judged> group, double speedup_limit,
                                      double incorrect_penalty) {
  double sum = 0, right = 0;
  for (const Judged& judged : group)
    if (binary_reward(judged) > 0) sum += std::log(judged.speedup), ++right;
  std::vector<double> found(group.size(), 0.0);
  if (right == 0) return found;
  const double limit = std::log(speedup_limit);
  for (size_t i = 0; i < group.size(); ++i)
    found[i] = binary_reward(group[i]) > 0
                   ? std::clamp(std::log(group[i].speedup) - sum / right, -limit, limit)
                   : -incorrect_penalty;
  return found;
}

std::vector<double> best_advantages(std::span<const Judged> group, double speedup_limit,
                                    double incorrect_penalty) {
  auto found = log_speed_rewards(group, speedup_limit, incorrect_penalty);
  // Not what rounding leaves of equal speeds: advantages are divided by their sum.
  for (size_t i = 0; i < group.size(); ++i)
    if (binary_reward(group[i]) > 0 && found[i] <= 1e-9) found[i] = 0;
  return found;
}

std::vector<double> centred_speed_advantages(std::span<const Judged> group, double speedup_limit,
                                             double incorrect_penalty) {
  auto found = advantages(log_speed_rewards(group, speedup_limit, incorrect_penalty), Baseline::kMean);
  for (double& advantage : found)
    if (std::abs(advantage) <= 1e-9) advantage = 0;
  return found;
}

}  // namespace nereid::train
