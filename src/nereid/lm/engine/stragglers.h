// Samples of one request that are much longer than the others: a small model that has lost its thread writes
// until its context is full, and all that waits for the request waits for that one sample.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nereid::lm {

class Stragglers {
 public:
  static constexpr int64_t kEnded = 3;            // samples, at least, before any is cut
  static constexpr int64_t kTimesLonger = 4;      // than the longest of those that have ended
  static constexpr int64_t kAlwaysAllowed = 256;  // tokens beyond that

  // Of a request for so many samples.
  explicit Stragglers(int64_t samples) : samples_(samples) {}

  // A sample ended by itself, after so many tokens.
  void ended(int64_t tokens) { ++ended_, longest_ = std::max(longest_, tokens); }

  // Whether a sample that goes on with so many tokens is to be cut: at least half of the samples have ended
  // by themselves, and none of them is nearly as long.
  bool holds(int64_t tokens) const {
    return ended_ >= kEnded && 2 * ended_ >= samples_ && tokens > kTimesLonger * longest_ + kAlwaysAllowed;
  }

 private:
  int64_t samples_, ended_ = 0, longest_ = 0;
};

}  // namespace nereid::lm
