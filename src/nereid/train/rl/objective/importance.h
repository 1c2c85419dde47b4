// What one policy wrote, learnt from under another: truncated importance weights.
//
// The engine's kernels round otherwise than the trainer's, and with staleness the engine wrote under the
// weights of one step before. So tokens come from a policy q that is not quite the trainer's p, and each
// token's gradient is multiplied with min(p / q, limit) (truncated importance sampling: Ionides, 2008; Yao et
// al., "Your efficient RL framework secretly brings you off-policy training", 2025).
#pragma once

#include <span>
#include <vector>

namespace nereid::train {

// How far p and q are apart, over tokens.
struct Mismatch {
  double tokens = 0;
  double sum = 0, most = 0;  // of |log p - log q|
  double truncated = 0;      // tokens whose weight would be above the limit
  void add(const Mismatch& other);
  double mean() const { return tokens > 0 ? sum / tokens : 0; }
  double truncated_share() const { return tokens > 0 ? truncated / tokens : 0; }
};

// Of one rollout: its tokens' log-probabilities under p and under q.
std::vector<float> truncated_weights(std::span<const float> trainer, std::span<const float> engine,
                                     double limit, Mismatch& mismatch);

}  // namespace nereid::train
