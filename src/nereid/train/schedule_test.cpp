#include "nereid/train/schedule.h"

#include <gtest/gtest.h>

namespace nereid::train {
namespace {

using Kind = ScheduleSettings::Kind;

TEST(Schedule, WarmsUpInAStraightLine) {
  const ScheduleSettings settings{.kind = Kind::kConstant, .steps = 100, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 2), 0.75);
  for (const int64_t step : {3, 4, 50, 99, 1000}) EXPECT_DOUBLE_EQ(learning_rate_share(settings, step), 1);
}

TEST(Schedule, CosineFallsFromThePeakToTheFinalShare) {
  const ScheduleSettings settings{
      .kind = Kind::kCosine, .steps = 110, .warmup_steps = 10, .final_share = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 9), 1);
  EXPECT_NEAR(learning_rate_share(settings, 59), 0.6,
              1e-12);  // half way: 50 of 100 steps of the cosine are done
  EXPECT_NEAR(learning_rate_share(settings, 109), 0.2, 1e-12);
  for (int64_t step = 10; step < 110; ++step)
    EXPECT_LT(learning_rate_share(settings, step), learning_rate_share(settings, step - 1)) << step;
}

TEST(Schedule, OfARunThatEndsWithItsSecondsTheCosineGoesByTime) {
  const ScheduleSettings settings{
      .kind = Kind::kCosine, .steps = 1000, .warmup_steps = 2, .final_share = 0.2, .seconds = 100};
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 0, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 1, 40), 1);  // the warm-up goes by steps
  EXPECT_NEAR(learning_rate_share(settings, 2, 50), 0.6, 1e-12);
  EXPECT_NEAR(learning_rate_share(settings, 900, 50), 0.6, 1e-12);
  for (const double spent : {100, 300}) EXPECT_NEAR(learning_rate_share(settings, 7, spent), 0.2, 1e-12);
  const ScheduleSettings by_steps{.kind = Kind::kCosine, .steps = 100};
  EXPECT_EQ(learning_rate_share(by_steps, 40, 7), learning_rate_share(by_steps, 40));
}

TEST(Schedule, TheLastStepIsTheOneAfterWhichAnotherWouldNotBeHalfDone) {
  const ScheduleSettings by_steps{.kind = Kind::kCosine, .steps = 3};
  EXPECT_FALSE(is_last_step(by_steps, 1, 1e9, 1));
  EXPECT_TRUE(is_last_step(by_steps, 2, 0, 0));
  const ScheduleSettings by_time{.kind = Kind::kCosine, .steps = 1000, .seconds = 100};
  EXPECT_FALSE(is_last_step(by_time, 7, 84, 10));
  EXPECT_TRUE(is_last_step(by_time, 7, 86, 10));
  EXPECT_FALSE(is_last_step(by_time, 0, 0, 0));
}

TEST(Schedule, StaysThenDecaysInAStraightLine) {
  const ScheduleSettings settings{
      .kind = Kind::kWarmupStableDecay, .steps = 100, .warmup_steps = 5, .decay_steps = 10, .final_share = 0};
  for (int64_t step = 4; step < 90; ++step) EXPECT_DOUBLE_EQ(learning_rate_share(settings, step), 1) << step;
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 90), 0.9);
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 99), 0);
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 200), 0);
}

TEST(Schedule, AWarmUpThatFillsTheRunIsAllThereIs) {
  const ScheduleSettings settings{.kind = Kind::kCosine, .steps = 3, .warmup_steps = 3};
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 2), 1);
  EXPECT_DOUBLE_EQ(learning_rate_share(settings, 5), 1);
}

}  // namespace
}  // namespace nereid::train
