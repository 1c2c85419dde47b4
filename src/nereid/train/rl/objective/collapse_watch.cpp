#include "nereid/train/rl/objective/collapse_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace nereid::train {
namespace {

constexpr int64_t kAveraged = 10;  // steps

double total_of(const std::map<std::string, int64_t>& counts) {
  double sum = 0;
  for (const auto& [name, count] : counts) sum += static_cast<double>(count);
  return sum;
}

}  // namespace

void CollapseWatch::Average::add(double next) {
  steps = std::min(steps + 1, kAveraged);
  value += (next - value) / static_cast<double>(steps);
}

Figures CollapseWatch::metrics(const RolloutFigures& figures) {
  Figures metrics = {{"entropy", figures.entropy},
                     {"length", figures.length},
                     {"kl", figures.kl},
                     {"reward", figures.reward},
                     {"groups_alike", figures.groups_alike},
                     {"cut_off", figures.cut_off}};
  if (figures.speedup) metrics.emplace_back("speedup", *figures.speedup);
  const double rollouts = std::max(total_of(figures.verdicts), 1.0);
  for (const auto& [name, count] : figures.verdicts)
    metrics.emplace_back("verdict/" + name, static_cast<double>(count) / rollouts);
  for (const auto& [name, count] : figures.rules)
    metrics.emplace_back("rule/" + name, static_cast<double>(count) / rollouts);
  return metrics;
}

std::vector<std::string> CollapseWatch::look(const RolloutFigures& figures) {
  ++steps_;
  entropy_.add(figures.entropy), length_.add(figures.length), kl_.add(figures.kl),
      alike_.add(figures.groups_alike);
  const double rollouts = std::max(total_of(figures.verdicts), 1.0);
  // A rule that fires for the first time had not fired before.
  for (const auto& [name, count] : figures.rules)
    rules_.try_emplace(name, Average{.value = 0, .steps = kAveraged});
  for (auto& [name, average] : rules_) {
    const auto found = figures.rules.find(name);
    average.add(found == figures.rules.end() ? 0 : static_cast<double>(found->second) / rollouts);
  }
  if (steps_ <= limits_.first_steps) {
    first_entropy_ += figures.entropy / static_cast<double>(limits_.first_steps);
    first_length_ += figures.length / static_cast<double>(limits_.first_steps);
    return {};
  }
  std::vector<std::string> alarms;
  if (entropy_.value < limits_.entropy_share * first_entropy_)
    alarms.push_back(
        fmt::format("entropy is {:.3g} nats a token, it began at {:.3g}: answers become one answer",
                    entropy_.value, first_entropy_));
  if (length_.value > limits_.length_factor * first_length_ ||
      length_.value * limits_.length_factor < first_length_)
    alarms.push_back(
        fmt::format("answers have {:.0f} tokens, they began with {:.0f}", length_.value, first_length_));
  if (kl_.value > limits_.kl)
    alarms.push_back(
        fmt::format("KL is {:.3g}, above {:.3g}: the policy leaves the one that wrote the rollouts",
                    kl_.value, limits_.kl));
  if (alike_.value > limits_.alike)
    alarms.push_back(fmt::format("{:.0f} % of the groups have one reward for all: they teach nothing",
                                 100 * alike_.value));
  for (const auto& [name, average] : rules_)
    if (average.value > limits_.one_rule)
      alarms.push_back(fmt::format("{:.0f} % of the rollouts break the rule {}: look at some of them",
                                   100 * average.value, name));
  return alarms;
}

}  // namespace nereid::train
