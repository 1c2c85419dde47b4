#include "nereid/train/rl/step_times.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

namespace nereid::train {
namespace {

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::map<std::string, double> named(const Figures& figures) { return {figures.begin(), figures.end()}; }

TEST(StepTimesTest, SharesOfPartsSumToOne) {
  StepTimes times({});
  wait(0.05);
  times.begin();  // what was before does not count
  times.enter(StepPart::kEngine);
  wait(0.3);
  times.enter(StepPart::kJudge);
  wait(0.02);
  times.enter(StepPart::kEngine);  // again: the part's seconds add up
  wait(0.3);
  times.enter(StepPart::kTrainer);
  EXPECT_GE(times.seconds(StepPart::kEngine), 0.6);
  EXPECT_GE(times.seconds(StepPart::kJudge), 0.02);
  EXPECT_EQ(times.seconds(StepPart::kClock), 0);
  const auto figures = named(times.figures());
  double sum = 0;
  for (const auto part : kStepParts) sum += figures.at("wall/" + std::string(part));
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_GT(figures.at("wall/engine"), figures.at("wall/judge"));
  EXPECT_EQ(figures.count("busy/gpu"), 0u);  // there is none
}

TEST(StepTimesTest, UtilizationIsThatOfThePart) {
  std::atomic<double> now = 1;
  StepTimes times([&] { return std::optional<double>(now.load()); }, 0.002);
  times.begin();
  times.enter(StepPart::kEngine);
  wait(0.6);
  now = 0;
  times.enter(StepPart::kClock);
  wait(0.6);
  auto figures = named(times.figures());
  EXPECT_GT(figures.at("busy/gpu_engine"), 0.9);
  EXPECT_LT(figures.at("busy/gpu_clock"), 0.1);
  EXPECT_NEAR(figures.at("busy/gpu"), 0.5, 0.2);
  EXPECT_EQ(figures.count("busy/gpu_trainer"), 0u);
  times.begin();
  wait(0.05);
  figures = named(times.figures());
  EXPECT_EQ(figures.count("busy/gpu_engine"), 0u);
  EXPECT_LT(figures.at("busy/gpu"), 0.1);
}

TEST(StepTimesTest, WhatCannotBeReadIsNoFigure) {
  StepTimes times([] { return std::optional<double>(); }, 0.002);
  times.begin();
  wait(0.05);
  EXPECT_EQ(named(times.figures()).count("busy/gpu"), 0u);
}

}  // namespace
}  // namespace nereid::train
