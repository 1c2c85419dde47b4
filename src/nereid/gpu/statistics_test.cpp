#include "nereid/gpu/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace nereid::gpu {
namespace {

TEST(Median, IsTheMiddleOfSortedSamples) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({1, 1, 1, 100}), 1);
}

std::vector<double> lognormal(uint64_t seed, size_t count, double centre, double sigma) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(std::log(centre), sigma);
  std::vector<double> samples(count);
  for (double& sample : samples) sample = std::exp(normal(random));
  return samples;
}

TEST(Bootstrap, SameSamplesSameInterval) {
  const auto samples = lognormal(1, 50, 10, 0.1);
  const Interval a = bootstrap_median(samples), b = bootstrap_median(samples);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LE(a.low, median(samples));
  EXPECT_GE(a.high, median(samples));
}

// In repeated experiments, about 95 in 100 intervals hold the truth.
TEST(Bootstrap, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  constexpr int kExperiments = 300;
  int median_held = 0, ratio_held = 0;
  for (int i = 0; i < kExperiments; ++i) {
    const auto above = lognormal(2 * i + 1, 41, 12, 0.2), below = lognormal(2 * i + 2, 40, 8, 0.2);
    const Interval m = bootstrap_median(above, {.resamples = 400});
    const Interval r = bootstrap_ratio(above, below, {.resamples = 400});
    median_held += m.low <= 12 && 12 <= m.high ? 1 : 0;
    ratio_held += r.low <= 1.5 && 1.5 <= r.high ? 1 : 0;
  }
  EXPECT_GT(median_held, 0.90 * kExperiments);
  EXPECT_LT(median_held, kExperiments);
  EXPECT_GT(ratio_held, 0.90 * kExperiments);
  EXPECT_LT(ratio_held, kExperiments);
}

// Ranks drawn one by one, as the bootstrap is defined, for even and odd numbers of samples.
TEST(Bootstrap, IsThatOfResamples) {
  for (const size_t count : {1, 2, 3, 8, 15, 40}) {
    const auto samples = lognormal(7, count, 10, 0.3);
    std::mt19937_64 random(5);
    std::vector<double> medians(20000);
    for (double& value : medians) {
      std::vector<double> resample(count);
      for (double& sample : resample) sample = samples[random() % count];
      value = median(resample);
    }
    std::sort(medians.begin(), medians.end());
    for (const double confidence : {0.5, 0.9}) {
      const Interval drawn = bootstrap_median(samples, {.confidence = confidence, .resamples = 20000});
      const auto share_below = [&](double value) {  // the middle of those that are equal
        const auto [first, last] = std::equal_range(medians.begin(), medians.end(), value);
        return std::pair(static_cast<double>(first - medians.begin()) / 20000,
                         static_cast<double>(last - medians.begin()) / 20000);
      };
      const auto [low_from, low_to] = share_below(drawn.low);
      const auto [high_from, high_to] = share_below(drawn.high);
      EXPECT_LE(low_from - 0.02, (1 - confidence) / 2) << count;
      EXPECT_GE(low_to + 0.02, (1 - confidence) / 2) << count;
      EXPECT_LE(high_from - 0.02, (1 + confidence) / 2) << count;
      EXPECT_GE(high_to + 0.02, (1 + confidence) / 2) << count;
    }
  }
}

TEST(Bootstrap, MoreSamplesNarrowIt) {
  EXPECT_LT(relative_width(bootstrap_median(lognormal(3, 1600, 10, 0.2))),
            0.5 * relative_width(bootstrap_median(lognormal(3, 100, 10, 0.2))));
  EXPECT_EQ(bootstrap_median({5, 5, 5}).low, 5);
  EXPECT_TRUE(std::isinf(relative_width({-1, 1})));
}

}  // namespace
}  // namespace nereid::gpu
