#include "nereid/lm/engine/stragglers.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

TEST(StragglersTest, IsCutOnceHalfOfTheSamplesHaveEnded) {
  Stragglers samples(8);
  for (int i = 0; i < 3; ++i) samples.ended(100 - i);
  EXPECT_FALSE(samples.holds(1'000'000));  // three of eight
  samples.ended(90);
  EXPECT_FALSE(samples.holds(4 * 100 + 256));
  EXPECT_TRUE(samples.holds(4 * 100 + 257));
  samples.ended(300);  // a longer one
  EXPECT_FALSE(samples.holds(4 * 100 + 257));
  EXPECT_TRUE(samples.holds(4 * 300 + 257));
}

TEST(StragglersTest, FewSamplesSayNothing) {
  for (const int64_t count : {1, 2, 3}) {
    Stragglers samples(count);
    for (int64_t i = 1; i < count; ++i) samples.ended(10);
    EXPECT_FALSE(samples.holds(1'000'000)) << count;
  }
  Stragglers four(4);
  for (int i = 0; i < 3; ++i) four.ended(10);
  EXPECT_TRUE(four.holds(300));
}

}  // namespace
}  // namespace nereid::lm
