#include "nereid/train/rl/objective/importance.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::train {

void Mismatch::add(const Mismatch& other) {
  tokens += other.tokens, sum += other.sum, truncated += other.truncated;
  most = std::max(most, other.most);
}

std::vector<float> truncated_weights(std::span<const float> trainer, std::span<const float> engine,
                                     double limit, Mismatch& mismatch) {
  NEREID_CHECK(trainer.size() == engine.size(), "as many log-probabilities of both, got {} and {}",
               trainer.size(), engine.size());
  std::vector<float> weights;
  for (size_t t = 0; t < trainer.size(); ++t) {
    const double apart = double{trainer[t]} - double{engine[t]};
    const double ratio = std::exp(apart);
    mismatch.sum += std::abs(apart);
    mismatch.most = std::max(mismatch.most, std::abs(apart));
    mismatch.truncated += ratio > limit;
    weights.push_back(static_cast<float>(std::min(ratio, limit)));
  }
  mismatch.tokens += static_cast<double>(trainer.size());
  return weights;
}

}  // namespace nereid::train
