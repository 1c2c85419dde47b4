#include "nereid/train/rl/objective/objective.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::train {
namespace {

double log_ratio(const Rollout& rollout, size_t token) {
  return double{rollout.log_probabilities[token]} - double{rollout.old_log_probabilities[token]};
}

class Evaluation {
 public:
  Evaluation(const ObjectiveSettings& settings, std::span<const Rollout> rollouts,
             std::span<const size_t> groups)
      : settings_(settings), rollouts_(rollouts), groups_(groups) {
    NEREID_CHECK(!groups.empty() && groups.front() == 0 && groups.back() == rollouts.size() &&
                     std::ranges::is_sorted(groups),
                 "groups from 0 to {} rollouts", rollouts.size());
    for (const Rollout& rollout : rollouts) {
      NEREID_CHECK(
          rollout.log_probabilities.size() == rollout.old_log_probabilities.size() &&
              rollout.plan_tokens <= rollout.log_probabilities.size() &&
              (rollout.weights.empty() || rollout.weights.size() == rollout.log_probabilities.size()),
          "as many old log-probabilities and weights as new, and no more in the plan, got {}, {}, {} "
          "and {}",
          rollout.log_probabilities.size(), rollout.old_log_probabilities.size(), rollout.weights.size(),
          rollout.plan_tokens);
      value_.gradients.emplace_back(rollout.log_probabilities.size(), 0.0F);
      tokens_ += static_cast<double>(rollout.log_probabilities.size());
    }
  }

  ObjectiveValue find() {
    if (tokens_ == 0) return std::move(value_);
    measure_kl();
    switch (settings_.kind) {
      case ObjectiveSettings::Kind::kGrpo:
        grpo();
        break;
      case ObjectiveSettings::Kind::kHrd:
        hrd();
        break;
      case ObjectiveSettings::Kind::kBest:
        best();
        break;
      case ObjectiveSettings::Kind::kDrpo:
        drpo();
        break;
    }
    for (size_t i = 0; i < rollouts_.size(); ++i)
      for (size_t t = 0; t < rollouts_[i].weights.size(); ++t)
        value_.gradients[i][t] *= rollouts_[i].weights[t];
    value_.clipped_share = clipped_ / tokens_;
    return std::move(value_);
  }

 private:
  void measure_kl() {
    for (const Rollout& rollout : rollouts_)
      for (size_t t = 0; t < rollout.log_probabilities.size(); ++t)
        value_.kl += (std::expm1(log_ratio(rollout, t)) - log_ratio(rollout, t)) / tokens_;
  }

  // Adds -weight * sum over tokens [begin, end) of min(ratio A, clip(ratio) A).
  void add_clipped(size_t index, size_t begin, size_t end, double advantage, double weight) {
    const Rollout& rollout = rollouts_[index];
    for (size_t t = begin; t < end; ++t) {
      const double ratio = std::exp(log_ratio(rollout, t));
      const double plain = ratio * advantage,
                   bound = std::clamp(ratio, 1 - settings_.clip, 1 + settings_.clip) * advantage;
      value_.loss -= weight * std::min(plain, bound);
      if (plain <= bound)
        value_.gradients[index][t] -= static_cast<float>(weight * plain);
      else
        ++clipped_;
    }
  }

  std::vector<Judged> judged(size_t group) const {
    std::vector<Judged> found;
    for (size_t i = groups_[group]; i < groups_[group + 1]; ++i) found.push_back(rollouts_[i].judged);
    return found;
  }

  std::vector<SplitReward> later(size_t group) const {
    std::vector<SplitReward> found;
    for (size_t i = groups_[group]; i < groups_[group + 1]; ++i) found.push_back(rollouts_[i].later);
    return found;
  }

  // The mean over rollouts of each one's mean over its tokens.
  void grpo() {
    const auto count = static_cast<double>(
        std::ranges::count_if(rollouts_, [](const Rollout& r) { return !r.log_probabilities.empty(); }));
    for (size_t g = 0; g + 1 < groups_.size(); ++g) {
      const auto worth = code_advantages(settings_, judged(g), later(g));
      for (size_t i = groups_[g]; i < groups_[g + 1]; ++i) {
        const size_t length = rollouts_[i].log_probabilities.size();
        if (length > 0)
          add_clipped(i, 0, length, worth[i - groups_[g]], 1 / (count * static_cast<double>(length)));
      }
    }
  }

  // Of each class the mean over all of its tokens in the batch.
  void hrd() {
    double plan_tokens = 0;
    for (const Rollout& rollout : rollouts_) plan_tokens += static_cast<double>(rollout.plan_tokens);
    const double code_tokens = tokens_ - plan_tokens;
    for (size_t g = 0; g + 1 < groups_.size(); ++g) {
      const auto of_plan = plan_advantages(settings_, judged(g), later(g));
      const auto of_code = code_advantages(settings_, judged(g), later(g));
      for (size_t i = groups_[g]; i < groups_[g + 1]; ++i) {
        const size_t plan = rollouts_[i].plan_tokens, length = rollouts_[i].log_probabilities.size();
        if (plan > 0) add_clipped(i, 0, plan, of_plan[i - groups_[g]], settings_.alpha / plan_tokens);
        if (plan < length) add_clipped(i, plan, length, of_code[i - groups_[g]], 1 / code_tokens);
      }
    }
  }

  // The mean over the tokens of what is copied (or pushed away), where an answer's weigh its advantage's
  // size: as supervised examples would be learnt from, so the loss stands in one scale with the loss of
  // [sft_mix].
  void best() {
    struct Part {
      size_t index, begin, end;
      double advantage;
    };
    std::vector<Part> parts;
    double weights = 0;
    for (size_t g = 0; g + 1 < groups_.size(); ++g) {
      const auto of_plan = plan_advantages(settings_, judged(g));
      const auto of_code = code_advantages(settings_, judged(g));
      for (size_t i = groups_[g]; i < groups_[g + 1]; ++i) {
        const size_t plan = rollouts_[i].plan_tokens, length = rollouts_[i].log_probabilities.size();
        for (const Part& part :
             {Part{i, 0, plan, of_plan[i - groups_[g]]}, Part{i, plan, length, of_code[i - groups_[g]]}}) {
          if (part.advantage == 0 || part.begin == part.end) continue;
          weights += std::abs(part.advantage) * static_cast<double>(part.end - part.begin);
          parts.push_back(part);
        }
      }
    }
    for (const Part& part : parts) add_clipped(part.index, part.begin, part.end, part.advantage, 1 / weights);
  }

  // The mean over groups of tau * log mean exp(s / tau) over the incorrect less the weighted mean of s over
  // the correct; s is a rollout's mean log-probability. A group without a correct one only has a share in the
  // KL.
  void drpo() {
    const double share = 1 / static_cast<double>(groups_.size() - 1);
    for (size_t g = 0; g + 1 < groups_.size(); ++g) {
      std::vector<size_t> correct, incorrect;
      for (size_t i = groups_[g]; i < groups_[g + 1]; ++i)
        if (!rollouts_[i].log_probabilities.empty())
          (binary_reward(rollouts_[i].judged) > 0 ? correct : incorrect).push_back(i);
      if (correct.empty()) continue;
      const auto by_speed = softmax(
          correct, [&](size_t i) { return std::log(rollouts_[i].judged.speedup) / settings_.lambda; });
      for (size_t k = 0; k < correct.size(); ++k) add_mean(correct[k], -share * by_speed.shares[k]);
      if (incorrect.empty()) continue;
      const auto soft = softmax(incorrect, [&](size_t i) { return mean_of(i) / settings_.tau; });
      value_.loss += share * settings_.tau * (soft.log_sum - std::log(static_cast<double>(incorrect.size())));
      for (size_t k = 0; k < incorrect.size(); ++k) spread(incorrect[k], share * soft.shares[k]);
    }
    const double beyond = std::max(value_.kl - settings_.delta, 0.0);
    value_.loss += settings_.beta * beyond * beyond;
    const double slope = 2 * settings_.beta * beyond / tokens_;
    for (size_t i = 0; i < rollouts_.size(); ++i)
      for (size_t t = 0; t < rollouts_[i].log_probabilities.size(); ++t)
        value_.gradients[i][t] += static_cast<float>(slope * std::expm1(log_ratio(rollouts_[i], t)));
  }

  struct Softmax {
    std::vector<double> shares;
    double log_sum = 0;
  };
  template <typename Score>
  static Softmax softmax(const std::vector<size_t>& indices, const Score& score) {
    Softmax found;
    double highest = -INFINITY, sum = 0;
    for (const size_t i : indices)
      found.shares.push_back(score(i)), highest = std::max(highest, found.shares.back());
    for (double& share : found.shares) share = std::exp(share - highest), sum += share;
    for (double& share : found.shares) share /= sum;
    found.log_sum = highest + std::log(sum);
    return found;
  }

  double mean_of(size_t index) const {
    double sum = 0;
    for (const float value : rollouts_[index].log_probabilities) sum += value;
    return sum / static_cast<double>(rollouts_[index].log_probabilities.size());
  }
  // weight * s, and its gradient.
  void add_mean(size_t index, double weight) {
    value_.loss += weight * mean_of(index);
    spread(index, weight);
  }
  void spread(size_t index, double weight) {
    for (float& gradient : value_.gradients[index])
      gradient += static_cast<float>(weight / static_cast<double>(value_.gradients[index].size()));
  }

  const ObjectiveSettings& settings_;
  std::span<const Rollout> rollouts_;
  std::span<const size_t> groups_;
  double tokens_ = 0, clipped_ = 0;
  ObjectiveValue value_;
};

}  // namespace

std::vector<double> plan_rewards(const ObjectiveSettings& settings, std::span<const Judged> group) {
  const bool hrd = settings.kind == ObjectiveSettings::Kind::kHrd;
  if (hrd && settings.incorrect_penalty)
    return log_speed_rewards(group, settings.speedup_limit, *settings.incorrect_penalty);
  std::vector<double> rewards;
  for (const Judged& judged : group)
    rewards.push_back(hrd ? split_reward(judged, settings.speedup_limit).plan : binary_reward(judged));
  return rewards;
}

std::vector<double> code_rewards(const ObjectiveSettings& settings, std::span<const Judged> group) {
  if (settings.kind == ObjectiveSettings::Kind::kHrd && settings.uniform_reward)
    return plan_rewards(settings, group);
  std::vector<double> rewards;
  for (const Judged& judged : group) rewards.push_back(binary_reward(judged));
  return rewards;
}

std::vector<double> plan_advantages(const ObjectiveSettings& settings, std::span<const Judged> group,
                                    std::span<const SplitReward> later) {
  if (settings.kind == ObjectiveSettings::Kind::kBest)
    return settings.plan_incorrect_penalty
               ? centred_speed_advantages(group, settings.speedup_limit, *settings.plan_incorrect_penalty)
               : best_advantages(group, settings.speedup_limit, settings.incorrect_penalty.value_or(0));
  auto returns = plan_rewards(settings, group);
  for (size_t i = 0; i < later.size(); ++i) returns[i] += later[i].plan;
  return advantages(returns, settings.baseline);
}

std::vector<double> code_advantages(const ObjectiveSettings& settings, std::span<const Judged> group,
                                    std::span<const SplitReward> later) {
  if (settings.kind == ObjectiveSettings::Kind::kBest)
    return best_advantages(group, settings.speedup_limit, settings.incorrect_penalty.value_or(0));
  auto returns = code_rewards(settings, group);
  for (size_t i = 0; i < later.size(); ++i) returns[i] += later[i].code;
  return advantages(returns, settings.baseline);
}

std::vector<SplitReward> later_returns(const ObjectiveSettings& settings, double discount,
                                       std::span<const Judged> judged, std::span<const size_t> groups,
                                       std::span<const size_t> next) {
  NEREID_CHECK(next.size() == judged.size() && !groups.empty() && groups.back() == judged.size(),
               "a next turn for each of {} answers, got {}", judged.size(), next.size());
  std::vector<SplitReward> rewards, later(judged.size());
  for (size_t g = 0; g + 1 < groups.size(); ++g) {
    const auto group = judged.subspan(groups[g], groups[g + 1] - groups[g]);
    const auto of_plan = plan_rewards(settings, group), of_code = code_rewards(settings, group);
    for (size_t i = 0; i < group.size(); ++i) rewards.push_back({.plan = of_plan[i], .code = of_code[i]});
  }
  for (size_t i = judged.size(); i-- > 0;) {
    if (next[i] == kNoTurn) continue;
    NEREID_CHECK(next[i] > i && next[i] < judged.size(), "a turn after answer {}, got {}", i, next[i]);
    later[i] = {.plan = discount * (rewards[next[i]].plan + later[next[i]].plan),
                .code = discount * (rewards[next[i]].code + later[next[i]].code)};
  }
  return later;
}

ObjectiveValue evaluate_objective(const ObjectiveSettings& settings, std::span<const Rollout> rollouts,
                                  std::span<const size_t> groups) {
  return Evaluation(settings, rollouts, groups).find();
}

}  // namespace nereid::train
