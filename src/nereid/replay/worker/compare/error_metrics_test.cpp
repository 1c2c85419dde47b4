#include "nereid/replay/worker/compare/error_metrics.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

// Numbers with everything odd among them: whether the three agree on it is left to chance.
ElementRange odd_range(int64_t count, int seed, bool others) {
  at::manual_seed(seed);
  const auto truth = at::randn({count}, at::kDouble);
  ElementRange s{truth.mul(at::randn({count}, at::kDouble).mul(1e-6).add(1)),
                 truth.mul(at::randn({count}, at::kDouble).mul(1e-7).add(1)),
                 truth,
                 {},
                 65504};
  if (others) s.agreed = at::rand({count}).lt(0.9);
  const double odd[] = {kInfinity, -kInfinity, NAN, 1e5, -1e5, 0, -0.0, 1e300};
  const std::vector<at::Tensor> all = {s.got, s.own, s.truth};
  for (int i = 0; i < 200; ++i) {
    const auto at = at::randint(count, {1}).item().toLong();
    const double value = odd[i % 8];
    for (size_t t = 0; t < all.size(); ++t)
      if (i % 3 == 0 || at::rand({1}).item().toDouble() < 0.6) all[t][at] = value;
  }
  return s;
}

// Sums that differ only in the order of their terms.
void expect_same_sum(double a, double b) {
  if (std::isfinite(b))
    EXPECT_NEAR(a, b, 1e-9 * b);
  else
    EXPECT_EQ(std::isnan(a), std::isnan(b)) << a << " " << b;
}

void expect_same(const CandidateError& a, const CandidateError& b) {
  EXPECT_EQ(a.wrong, b.wrong);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.worst, b.worst);
  EXPECT_DOUBLE_EQ(a.largest, b.largest);
  EXPECT_DOUBLE_EQ(a.absolute, b.absolute);
  EXPECT_DOUBLE_EQ(a.relative, b.relative);
  expect_same_sum(a.squared, b.squared);
}

class ErrorMetricsTest : public testing::TestWithParam<std::tuple<int64_t, bool>> {};

TEST_P(ErrorMetricsTest, LoopsSayWhatPyTorchSays) {
  const auto [count, others] = GetParam();
  for (int seed = 0; seed < 5; ++seed) {
    const auto s = odd_range(count, seed, others);
    const auto scale = scale_of(s), expected = by_operators::scale_of(s);
    EXPECT_EQ(scale.count, expected.count);
    EXPECT_EQ(scale.undefined, expected.undefined);
    EXPECT_GT(scale.undefined, 0);
    expect_same_sum(scale.squared, expected.squared);
    const auto own = own_error(s, s.own, 0.7), own_expected = by_operators::own_error(s, s.own, 0.7);
    EXPECT_DOUBLE_EQ(own.largest, own_expected.largest);
    expect_same_sum(own.squared, own_expected.squared);
    for (const double limit : {0.0, 1e-6, 1e3})
      expect_same(scaled_error(s, 0.7, limit), by_operators::scaled_error(s, 0.7, limit));
    expect_same(plain_error(s, 1e-6, 1e-7), by_operators::plain_error(s, 1e-6, 1e-7));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ErrorMetricsTest,
                         testing::Combine(testing::Values(300, 5000, 200000), testing::Bool()));

}  // namespace
}  // namespace nereid::replay
