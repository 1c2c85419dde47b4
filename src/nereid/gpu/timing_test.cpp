#include "nereid/gpu/timing.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace nereid::gpu {
namespace {

// A program whose runs take what a function says of how many ran before, on both clocks of the test.
class FakeProgram : public TimedProgram {
 public:
  using Model = std::function<double(int run, LaunchMode mode)>;
  FakeProgram(std::string* log, char name, Model model) : log_(log), name_(name), model_(std::move(model)) {}
  Result<std::vector<double>> sample(LaunchMode mode, int count) override {
    log_->push_back(name_);
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) samples.push_back(model_(runs++, mode));
    return samples;
  }
  int runs = 0;

 private:
  std::string* log_;
  char name_;
  Model model_;
};

FakeProgram::Model steady(double seconds, double noise, uint64_t seed) {
  return [=, random = std::mt19937_64(seed)](int, LaunchMode) mutable {
    return seconds * (1 + noise * std::uniform_real_distribution<double>(-1, 1)(random));
  };
}

TEST(Compare, FindsTheSpeedupAndStopsWhenItIsKnown) {
  std::string log;
  FakeProgram reference(&log, 'R', steady(3e-3, 0.01, 1)), candidate(&log, 'C', steady(2e-3, 0.01, 2));
  const auto result = compare(reference, candidate, LaunchMode::kGraph, {.budget_seconds = 100});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->converged);
  EXPECT_NEAR(result->speedup, 1.5, 0.02);
  EXPECT_LE(result->speedup_interval.low, 1.5);
  EXPECT_GE(result->speedup_interval.high, 1.5);
  EXPECT_LT(result->samples, 100);
  EXPECT_LE(result->candidate_interval.low, result->candidate_seconds);
  EXPECT_EQ(log.substr(0, 4), "RCCR");
}

TEST(Measure, TimesTheCandidateAloneAgainstAKnownTime) {
  std::string log;
  FakeProgram candidate(&log, 'C', steady(2e-3, 0.01, 2));
  const auto result = measure(candidate, 3e-3, LaunchMode::kGraph, {.budget_seconds = 100});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->converged);
  EXPECT_EQ(result->reference_seconds, 3e-3);
  EXPECT_NEAR(result->speedup, 1.5, 0.02);
  EXPECT_LE(result->speedup_interval.low, result->speedup);
  EXPECT_GE(result->speedup_interval.high, result->speedup);
  EXPECT_EQ(log, std::string(static_cast<size_t>(result->samples) / 10, 'C'));
  FakeProgram noisy(&log, 'N', steady(2e-3, 0.5, 2));
  const auto unsure = measure(noisy, 3e-3, LaunchMode::kGraph, {.budget_seconds = 100, .max_samples = 60});
  ASSERT_TRUE(unsure.ok());
  EXPECT_FALSE(unsure->converged);
  EXPECT_EQ(unsure->samples, 60);
}

TEST(Compare, NoiseTakesMoreSamplesAndThenSaysSo) {
  std::string log;
  FakeProgram reference(&log, 'R', steady(3e-3, 0.5, 1)), candidate(&log, 'C', steady(2e-3, 0.5, 2));
  const auto result =
      compare(reference, candidate, LaunchMode::kGraph, {.budget_seconds = 100, .max_samples = 60});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->converged);
  EXPECT_GE(result->samples, 60);
  EXPECT_LT(result->samples, 70);
}

TEST(Compare, ADriftingClockFavoursNeither) {
  std::string log;
  int runs = 0;
  const auto slowing = [&](int, LaunchMode) { return 1e-3 * (1 + 0.01 * runs++); };
  FakeProgram reference(&log, 'R', slowing), candidate(&log, 'C', slowing);
  const auto result =
      compare(reference, candidate, LaunchMode::kGraph, {.budget_seconds = 100, .max_samples = 200});
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result->speedup, 1, 0.01);
}

TEST(Compare, AClockThatStoodStillIsAnError) {
  std::string log;
  FakeProgram reference(&log, 'R', steady(1e-3, 0, 1)),
      candidate(&log, 'C', [](int, LaunchMode) { return 0.0; });
  const auto result = compare(reference, candidate, LaunchMode::kGraph, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().blame, Blame::kOurs);
}

TEST(Compare, ADeadlineEndsIt) {
  std::string log;
  FakeProgram reference(&log, 'R', steady(1e-3, 0.5, 1)), candidate(&log, 'C', steady(1e-3, 0.5, 2));
  EXPECT_FALSE(compare(reference, candidate, LaunchMode::kGraph, {}, Deadline::after(-1)).ok());
}

Comparison taking(double candidate, double spread) {
  Comparison comparison;
  comparison.candidate_seconds = candidate;
  comparison.candidate_interval = {candidate - spread, candidate + spread};
  return comparison;
}

TEST(Distributions, TheSlowestCountsBeyondNoise) {
  EXPECT_EQ(slowest_distribution({taking(1, 0.1)}), 0);
  EXPECT_EQ(slowest_distribution({taking(1, 0.1), taking(1.05, 0.1), taking(0.9, 0.1)}), 0);
  EXPECT_EQ(slowest_distribution({taking(1, 0.1), taking(2, 0.1), taking(4, 0.1), taking(3, 0.1)}), 2);
}

TEST(InputSets, AreCopiesWhereTheyHelpAndFit) {
  constexpr int64_t kMebi = int64_t{1} << 20, kL2 = 60 * kMebi;
  EXPECT_EQ(input_sets(kMebi, 2 * kMebi, kL2, 1000 * kMebi), 3);
  EXPECT_EQ(input_sets(100 * kMebi, 100 * kMebi, kL2, 100000 * kMebi), 3);
  EXPECT_EQ(input_sets(50 * kMebi, 100 * kMebi, kL2, 1000 * kMebi), 2) << "an eighth of what is free";
  EXPECT_EQ(input_sets(kMebi, 10000 * kMebi, kL2, 70000 * kMebi), 1) << "what is made of them is large";
  EXPECT_EQ(input_sets(241 * kMebi, 482 * kMebi, kL2, 100000 * kMebi), 1)
      << "they leave nothing of themselves";
  EXPECT_EQ(input_sets(0, kMebi, kL2, 100000 * kMebi), 1) << "no inputs";
}

}  // namespace
}  // namespace nereid::gpu
