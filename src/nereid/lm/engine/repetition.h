// A text that goes round in circles: a small model that has lost its thread repeats a few tokens until its
// context is full, which takes longer than all that is of use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nereid::lm {

class RepetitionWatch {
 public:
  static constexpr size_t kTokens = 192, kMaxPeriod = 24;

  // Whether the last kTokens tokens, this one among them, are one period of at most kMaxPeriod again and
  // again. Said some tokens late.
  bool push(int64_t token) {
    last_.push_back(token);
    if (last_.size() < 2 * kTokens && (last_.size() < kTokens || last_.size() % kCheckInterval != 0))
      return false;
    if (last_.size() == 2 * kTokens) last_.erase(last_.begin(), last_.begin() + kTokens);
    for (size_t period = 1; period <= kMaxPeriod; ++period)
      if (repeats(period)) return true;
    return false;
  }

 private:
  static constexpr size_t kCheckInterval = 16;  // tokens between two looks

  bool repeats(size_t period) const {
    for (size_t i = last_.size() - kTokens + period; i < last_.size(); ++i)
      if (last_[i] != last_[i - period]) return false;
    return true;
  }

  std::vector<int64_t> last_;
};

}  // namespace nereid::lm
