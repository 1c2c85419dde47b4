#include "nereid/replay/worker/compare/fused_metrics.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/error_statistics.h"
#include "nereid/replay/worker/compare/error_tail.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/host_kernels.h"

namespace nereid::replay {
namespace {

// Numbers of a dtype with everything odd among them.
ElementRange odd_elements(int64_t count, c10::ScalarType type, c10::ScalarType truth_type, bool agreed,
                          uint64_t seed) {
  at::manual_seed(seed);
  const auto exact = at::randn({count}, at::kDouble);
  const double eps = epsilon(dtype_of(type));
  auto got = exact.mul(at::randn({count}, at::kDouble).mul(4 * eps).add(1));
  auto own = exact.mul(at::randn({count}, at::kDouble).mul(eps).add(1));
  auto truth = exact.clone();
  const double odd[] = {kInfinity, -kInfinity, NAN, 1e5, -1e5, 0, -0.0, 1e300, 1e-310, 1e-42, -3e-8};
  const std::vector<at::Tensor> all = {got, own, truth};
  for (int i = 0; i < 150 && count > 0; ++i) {
    const auto at = at::randint(count, {1}).item().toLong();
    for (size_t t = 0; t < all.size(); ++t)
      if (i % 3 == 0 || at::rand({1}).item().toDouble() < 0.6) all[t][at] = odd[i % 11];
  }
  return {got.to(type), own.to(type), truth.to(truth_type), agreed ? at::rand({count}).lt(0.9) : at::Tensor(),
          largest_finite(dtype_of(type))};
}

ElementRange in_double(const ElementRange& s) {
  return {s.got.to(at::kDouble), s.own.to(at::kDouble), s.truth.to(at::kDouble), s.agreed, s.largest};
}

bool equal_sums(double a, double b, double magnitude) {
  if (std::isfinite(b) && std::isfinite(magnitude)) return std::abs(a - b) <= 1e-12 * magnitude;
  return std::isfinite(b) ? std::isfinite(a) : std::isnan(a) == std::isnan(b);
}

void expect_equal_sum(double a, double b, double magnitude) {
  EXPECT_TRUE(equal_sums(a, b, magnitude)) << a << " and " << b << " of " << magnitude;
}

void expect_equal(const CandidateError& a, const CandidateError& b) {
  EXPECT_EQ(a.wrong, b.wrong);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.worst, b.worst);
  EXPECT_EQ(a.largest, b.largest);
  EXPECT_EQ(a.absolute, b.absolute);
  EXPECT_EQ(a.relative, b.relative);
  expect_equal_sum(a.squared, b.squared, b.squared);
}

struct ElementTypes {
  c10::ScalarType type, truth;
};
class FusedMetricsTest : public testing::TestWithParam<ElementTypes> {
 protected:
  std::unique_ptr<FusedMetrics> fused_ = on_the_host();
};

TEST_P(FusedMetricsTest, KernelsGiveTheOperatorsNumbers) {
  for (const int64_t count : {1, 31, 256, 4096, 5003, 20001})
    for (const bool agreed : {false, true}) {
      const auto s =
          odd_elements(count, GetParam().type, GetParam().truth, agreed, 7 + static_cast<uint64_t>(count));
      const auto d = in_double(s);
      const auto scale = fused_->scale_of(s), expected = by_operators::scale_of(d);
      EXPECT_EQ(scale.count, expected.count);
      EXPECT_EQ(scale.undefined, expected.undefined);
      expect_equal_sum(scale.squared, expected.squared, expected.squared);
      for (const auto& other : {s.own, s.got}) {
        const auto own = fused_->own_error(s, other, 0.7),
                   own_expected = by_operators::own_error(d, other.to(at::kDouble), 0.7);
        EXPECT_EQ(own.largest, own_expected.largest);
        expect_equal_sum(own.squared, own_expected.squared, own_expected.squared);
      }
      const auto both = fused_->error_pair(s, 0.7);
      EXPECT_EQ(both.own.largest, fused_->own_error(s, s.own, 0.7).largest);
      EXPECT_EQ(both.own.squared, fused_->own_error(s, s.own, 0.7).squared);
      expect_equal(both.got, fused_->scaled_error(s, 0.7, kInfinity));
      const auto whole = fused_->scale_statistics(s);
      const auto of_truth = by_operators::scale_of({d.truth, d.truth, d.truth, {}, 1.7e308}),
                 of_own = by_operators::scale_of({d.own, d.own, d.own, {}, 1.7e308});
      EXPECT_EQ(whole.truth.count, of_truth.count);
      expect_equal_sum(whole.truth.squared, of_truth.squared, of_truth.squared);
      EXPECT_EQ(whole.own_finite, of_own.count);
      for (const double limit : {0.0, 1e-6, 1e-2, 1e3})
        expect_equal(fused_->scaled_error(s, 0.7, limit), by_operators::scaled_error(d, 0.7, limit));
      for (const bool of_got : {false, true})
        expect_equal(fused_->plain_error(s, 1e-3, 1e-4, of_got),
                     by_operators::plain_error(d, 1e-3, 1e-4, of_got));
    }
}

TEST_P(FusedMetricsTest, TailsAreTheLoops) {
  for (const int64_t count : {1, 4096, 20001})
    for (const bool agreed : {false, true}) {
      const auto s = odd_elements(count, GetParam().type, GetParam().truth, agreed, 9);
      const auto d = in_double(s);
      SampleErrors expected;
      expected.add(d, d.got, 0.7, count);
      const auto errors = at::empty({count}, at::kFloat);
      EXPECT_EQ(fused_->tail(s, s.got, 0.7, errors).counts, expected.tail.counts);
      EXPECT_TRUE(errors.equal(expected.largest));
      EXPECT_EQ(fused_->tail(s, s.got, 0.7, {}).counts, error_tail(d, d.got, 0.7).counts);
    }
}

TEST_P(FusedMetricsTest, ClosenessIsTheOperators) {
  int close = 0, other = 0;
  for (const int64_t count : {1, 256, 5003})
    for (const double odd : {0.0, 1.0}) {
      auto s = odd_elements(count, GetParam().type, GetParam().truth, false, 9);
      if (odd == 0) s.own = at::randn({count}, at::kDouble).to(GetParam().type), s.truth = s.own.clone();
      const auto d = in_double(s);
      for (const auto& [rtol, atol] : {std::pair(0.0, 0.0), {1e-3, 0.0}, {0.0, 1e-1}, {1.0, 1e6}})
        for (const bool equal_nan : {false, true}) {
          const auto expected = at::isclose(d.own, d.truth, rtol, atol, equal_nan).all().item().toBool();
          EXPECT_EQ(fused_->all_close(s.own, s.truth, rtol, atol, equal_nan), expected);
          const auto one = d.own.narrow(0, 0, 1);
          const auto all_one = at::isclose(d.own, one.expand_as(d.own), rtol, atol, equal_nan).all().item();
          EXPECT_EQ(fused_->all_close(s.own, s.own.narrow(0, 0, 1), rtol, atol, equal_nan), all_one.toBool());
          (expected ? close : other) += 1;
        }
    }
  EXPECT_GT(close, 0);
  EXPECT_GT(other, 0);
}

TEST_P(FusedMetricsTest, AgreeingIsTheOperators) {
  for (const int64_t count : {1, 4096, 5003}) {
    const auto s = odd_elements(count, GetParam().type, GetParam().truth, true, 3);
    const auto other = s.truth.to(at::kDouble).mul(at::randn({count}, at::kDouble).mul(1e-6).add(1));
    auto by_kernel = s.agreed.clone(), by_loops = s.agreed.clone();
    fused_->keep_agreeing(by_kernel, s.truth, other, 1e-6);
    keep_agreeing(by_loops, s.truth, other);
    EXPECT_TRUE(by_kernel.equal(by_loops));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, FusedMetricsTest,
    testing::Values(ElementTypes{at::kFloat, at::kDouble}, ElementTypes{at::kHalf, at::kDouble},
                    ElementTypes{at::kBFloat16, at::kDouble}, ElementTypes{at::kDouble, at::kDouble},
                    ElementTypes{at::kFloat, at::kFloat}, ElementTypes{at::kBFloat16, at::kBFloat16},
                    ElementTypes{at::kFloat8_e4m3fn, at::kDouble},
                    ElementTypes{at::kFloat8_e5m2, at::kDouble}),
    [](const auto& info) {
      return std::string(c10::toString(info.param.type)) + "_" + c10::toString(info.param.truth);
    });

TEST(FusedMetricsNumbersTest, EveryNumberOfSixteenAndEightBitsIsRead) {
  const auto fused = on_the_host();
  for (const auto type : {at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    const bool wide = type == at::kHalf || type == at::kBFloat16;
    const auto numbers = wide ? at::arange(-32768, 32768, at::kShort).view(type)
                              : at::arange(0, 256, at::kInt).to(at::kByte).view(type);
    for (int64_t i = 0; i < numbers.numel(); i += wide ? 37 : 1) {
      const auto one = numbers.narrow(0, i, 1), exact = one.to(at::kDouble);
      const auto error = fused->plain_error({one, exact, exact, {}, kInfinity}, 0, 0, false);
      ASSERT_EQ(error.wrong, 0) << c10::toString(type) << " " << i;
    }
  }
}

// The sums over all families' groups, by kernels and by operators.
void expect_equal_sums(const std::vector<int64_t>& sizes, c10::ScalarType type, bool agreed) {
  int64_t count = 1;
  for (const auto size : sizes) count *= size;
  const auto s = odd_elements(count, type, at::kDouble, agreed, 5);
  const auto d = in_double(s);
  const auto sums = [&](const ElementRange& range, const at::Tensor& own, const at::Tensor& got,
                        bool by_operators) {
    ErrorStatistics statistics(sizes, dtype_of(type), 0.9, by_operators);
    statistics.add_truth(range, 0);
    auto of_own = statistics.zeros(), of_got = statistics.zeros();
    statistics.add_error(of_own, range, own, 0);
    statistics.add_sample(of_own);
    statistics.add_error(of_got, range, got, 0);
    const auto found =
        statistics.check(of_got, {.energy = 0, .bias_ulps = 0, .small_energy = 0, .residue = 0});
    return std::pair(of_got, found ? found->text : "");
  };
  const auto operators = sums(d, d.own, d.got, true);
  use_fused_metrics(on_the_host(), c10::kCPU);
  const auto kernels = sums(s, s.own, s.got, false);
  ErrorStatistics statistics(sizes, dtype_of(type), 0.9);
  auto of_own = statistics.zeros(), of_got = statistics.zeros();
  ASSERT_TRUE(statistics.add_all(s, of_own, of_got));
  statistics.add_sample(of_own);
  const auto found = statistics.check(of_got, {.energy = 0, .bias_ulps = 0, .small_energy = 0, .residue = 0});
  use_fused_metrics(nullptr);
  EXPECT_EQ(found ? found->text : "", operators.second);
  EXPECT_EQ(kernels.second, operators.second);
  ASSERT_EQ(kernels.first.size(), operators.first.size());
  const size_t by_value = kernels.first.size() - 2 * kernels::kExponents;
  const auto& most = operators.first[0];
  for (size_t g = 0; g < 2 * kernels.first.size(); ++g) {
    const auto at = g / 2;
    const auto &a = g % 2 == 0 ? kernels.first[at] : of_got[at], &b = operators.first[at];
    // Hundreds of thousands of groups: an EXPECT for each would take longer than the sums.
    const bool errors =
        equal_sums(a.e, b.e, std::sqrt(most.e2 * static_cast<double>(count))) && equal_sums(a.e2, b.e2, b.e2);
    const bool products =
        at >= by_value || (equal_sums(a.et, b.et, std::sqrt(most.e2t2 * static_cast<double>(count))) &&
                           equal_sums(a.e2t2, b.e2t2, b.e2t2));
    if (!errors || !products)
      ADD_FAILURE() << "group " << at << ": got e " << a.e << ", e2 " << a.e2 << ", et " << a.et << ", e2t2 "
                    << a.e2t2 << ", expected " << b.e << ", " << b.e2 << ", " << b.et << ", " << b.e2t2;
  }
}

TEST(FusedMetricsSumsTest, EverySliceHasTheOperatorsSums) {
  const std::vector<std::vector<int64_t>> shapes = {
      {100},         {128},        {5003},    {70001},     {50, 30, 7}, {3, 1, 5, 2},  {1, 4099, 3},
      {4, 33000, 2}, {2, 3, 9001}, {1000, 2}, {2, 100000}, {100000, 2}, {3, 1, 70007}, {7, 8, 9, 10, 2}};
  bool agreed = false;  // of large ones in turn, which take most of the time
  for (const auto& sizes : shapes) {
    SCOPED_TRACE(fmt::format("[{}]", fmt::join(sizes, ", ")));
    expect_equal_sums(sizes, at::kBFloat16, agreed = !agreed);
    if (c10::multiply_integers(sizes) < 50000) expect_equal_sums(sizes, at::kBFloat16, !agreed);
  }
  // Runs of several families that are made of the same pieces.
  expect_equal_sums({2, 40, 2048}, at::kHalf, false);
  expect_equal_sums({3, 22, 1024}, at::kFloat, true);
  expect_equal_sums({64, 512}, at::kFloat, false);
  expect_equal_sums({64, 512}, at::kDouble, false);
}

// All of compare(): the same reasons, positions and figures whether kernels or loops measure.
TEST(FusedMetricsCompareTest, ComparisonsAreTheLoops) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kComplexFloat}) {
    at::manual_seed(11);
    const auto truth = at::randn({40, 130}, type == at::kComplexFloat ? at::kComplexDouble : at::kDouble);
    for (const double gain : {1.0, 1.004, 1.5}) {
      const auto compared = [&] {
        OutputTensors tensors{.dtype = dtype_of(type),
                              .got = truth.mul(gain).to(type),
                              .own = truth.to(type),
                              .truth = truth,
                              .coarse = type == at::kBFloat16};
        widen(tensors, truth.mul(1 + 1e-7));
        return std::pair(compare(tensors, {}), compare(tensors, {.rtol = 1e-3, .atol = 1e-5}));
      };
      const auto loops = compared();
      use_fused_metrics(on_the_host(), c10::kCPU);
      const auto fused = compared();
      use_fused_metrics(nullptr);
      EXPECT_EQ(fused.first.agrees, loops.first.agrees);
      EXPECT_EQ(fused.first.reason, loops.first.reason);
      EXPECT_EQ(fused.first.worst, loops.first.worst);
      EXPECT_EQ(fused.first.wrong, loops.first.wrong);
      EXPECT_NEAR(fused.first.norm_error, loops.first.norm_error, 1e-12 * loops.first.norm_error);
      EXPECT_EQ(fused.second.agrees, loops.second.agrees);
      EXPECT_EQ(fused.second.reason, loops.second.reason);
    }
  }
}

}  // namespace
}  // namespace nereid::replay
