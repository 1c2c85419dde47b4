#include "nereid/lm/engine/repetition.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::lm {
namespace {

TEST(RepetitionWatch, SeesAPeriodAgainAndAgain) {
  for (const size_t period :
       {size_t{1}, size_t{7}, RepetitionWatch::kMaxPeriod, RepetitionWatch::kMaxPeriod + 1}) {
    std::mt19937 random(static_cast<unsigned>(period));
    RepetitionWatch watch;
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(watch.push(static_cast<int64_t>(random() % 4096))) << i;
    size_t pushed = 0;
    while (pushed < 1000 && !watch.push(static_cast<int64_t>(pushed % period))) ++pushed;
    if (period > RepetitionWatch::kMaxPeriod) {
      EXPECT_EQ(pushed, 1000U);
    } else {
      EXPECT_GE(pushed + 1, RepetitionWatch::kTokens - period);
      EXPECT_LE(pushed, RepetitionWatch::kTokens + 16);
    }
  }
}

TEST(RepetitionWatch, WhatIsRepeatedLessIsNone) {
  RepetitionWatch watch;
  for (int round = 0; round < 50; ++round)
    for (size_t i = 0; i < RepetitionWatch::kTokens; ++i)
      ASSERT_FALSE(watch.push(i == 0 ? 100 + round : 1))
          << round << " " << i;  // but for one token in kTokens
}

}  // namespace
}  // namespace nereid::lm
