// The objectives of reinforcement learning: the loss of a batch of rollouts, and its gradient by each token's
// log-probability.
//
// That gradient is all that the model needs: token log-probabilities are scored once without gradients,
// handed in here, and the backward pass starts from what comes out. docs/rl.md says where the papers
// are silent and what was chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nereid/train/rl/objective/advantages.h"

namespace nereid::train {

struct ObjectiveSettings {
  enum class Kind {
    kGrpo,  // AutoTriton: binary reward, clipped ratios, each rollout's mean over its tokens
    kHrd,   // TritonRL: plan and code with rewards, baselines and means of their own; L = alpha * L_plan +
            // L_code
    kBest,  // ours: a right answer that is faster than the right ones' mean is copied; a wrong one is pushed
            // away, if it has a penalty; nothing else counts
    kDrpo,  // DRTriton: correct ones by softmax of their speed, incorrect ones by a soft maximum, KL beyond
            // delta
  };
  Kind kind = Kind::kGrpo;
  Baseline baseline = Baseline::kNormalized;  // kGrpo, kHrd
  double clip = 0.2;                          // all but kDrpo: ratios in [1 - clip, 1 + clip]
  double alpha = 0.1;                         // kHrd
  bool uniform_reward = false;                // kHrd: the code's tokens get the plan's reward
  double speedup_limit = 2;                   // kHrd: a plan earns no more; kBest: its logarithm, an answer
  std::optional<double>
      incorrect_penalty{};  // kHrd: plans earn log_speed_rewards; kBest: a wrong answer's, 0 without
  std::optional<double>
      plan_incorrect_penalty{};      // kBest: plans are pushed by centred_speed_advantages at this price
  double lambda = 0.1;               // kDrpo: temperature of log speed-ups
  double tau = 5;                    // kDrpo: temperature of incorrect ones
  double beta = 1000, delta = 1e-4;  // kDrpo: beta * max(KL - delta, 0)^2
};

// What a group's plans earn, or its code; grpo has one reward for both, best and drpo none.
std::vector<double> plan_rewards(const ObjectiveSettings& settings, std::span<const Judged> group);
std::vector<double> code_rewards(const ObjectiveSettings& settings, std::span<const Judged> group);
// And what their tokens' log-probabilities are pushed by; of all but drpo. `later`: what each one's return
// has besides its own reward (later_returns), of grpo and hrd; empty: nothing.
std::vector<double> plan_advantages(const ObjectiveSettings& settings, std::span<const Judged> group,
                                    std::span<const SplitReward> later = {});
std::vector<double> code_advantages(const ObjectiveSettings& settings, std::span<const Judged> group,
                                    std::span<const SplitReward> later = {});

inline constexpr size_t kNoTurn = SIZE_MAX;
// Of answers that are turns of conversations: discount * (reward + later) of each one's next turn, which is
// `next` (an index above its own), or 0 where it is kNoTurn. A group holds the answers of one turn to one
// prompt: with Baseline::kLeaveOneOut, advantages of returns are TRLOO's.
std::vector<SplitReward> later_returns(const ObjectiveSettings& settings, double discount,
                                       std::span<const Judged> judged, std::span<const size_t> groups,
                                       std::span<const size_t> next);

// An answer's tokens, in order: the first `plan_tokens` are the plan, up to and including </think>.
struct Rollout {
  std::vector<float> log_probabilities;      // under the policy that learns
  std::vector<float> old_log_probabilities;  // under the one before these rollouts' first update
  // What each token's gradient is multiplied with (importance.h); empty: 1.
  std::vector<float> weights = {};
  size_t plan_tokens = 0;
  Judged judged;
  SplitReward later = {};  // of later turns (later_returns)
};

struct ObjectiveValue {
  double loss = 0;
  std::vector<std::vector<float>> gradients;  // of each rollout, by each token's log-probability
  double kl = 0;             // of the old policy from the new: mean over tokens of ratio - 1 - log ratio
  double clipped_share = 0;  // of tokens, whose gradient clipping took away
};

// The loss and all other figures are those without weights.
//
// `groups`: where each group of rollouts (of one prompt) begins, and the end. A rollout without tokens takes
// no part.
ObjectiveValue evaluate_objective(const ObjectiveSettings& settings, std::span<const Rollout> rollouts,
                                  std::span<const size_t> groups);

}  // namespace nereid::train
