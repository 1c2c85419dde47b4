#include "nereid/replay/worker/compare/fused_metrics.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/error_statistics.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using kernels::Kernel;

// Runs blocks one after the other, on the CPU's tensors.
class HostLauncher final : public KernelLauncher {
 public:
  void launch(Kernel kernel, int64_t blocks, const void* parameters, size_t) const override {
    for (int64_t b = 0; b < blocks; ++b) run(kernel, b, parameters);
  }

 private:
  template <typename T>
  static const T& as(const void* parameters) {
    return *static_cast<const T*>(parameters);
  }
  static void run(Kernel kernel, int64_t index, const void* parameters) {
    using namespace kernels;
    const HostBlock<kThreads> block{index};
    Sums sums[kThreads];
    switch (kernel) {
      case Kernel::kScale: {
        ScalePart slots[kThreads];
        return scale_block(block, as<MetricParameters>(parameters), slots);
      }
      case Kernel::kOwnError: {
        OwnPart slots[kThreads];
        return own_error_block(block, as<MetricParameters>(parameters), slots);
      }
      case Kernel::kGotError: {
        GotPart slots[kThreads];
        return got_error_block(block, as<MetricParameters>(parameters), slots);
      }
      case Kernel::kRuns:
        return runs_block(block, as<SumParameters>(parameters), sums);
      case Kernel::kColumns:
        return columns_block(block, as<SumParameters>(parameters));
      case Kernel::kValues: {
        std::vector<ValueSums> tables(2 * kExponents * kTables);
        return values_block(HostBlock<kValueThreads>{index}, as<SumParameters>(parameters), tables.data());
      }
      case Kernel::kFold:
        return fold_block(block, as<FoldParameters>(parameters), sums);
      case Kernel::kAgree:
        return agree_block(block, as<AgreeParameters>(parameters));
    }
  }
};

std::unique_ptr<FusedMetrics> on_the_host() {
  return std::make_unique<FusedMetrics>(std::make_unique<HostLauncher>());
}

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

void expect_equal(const GotError& a, const GotError& b) {
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
      for (const double limit : {0.0, 1e-6, 1e-2, 1e3})
        expect_equal(fused_->scaled_error(s, 0.7, limit), by_operators::scaled_error(d, 0.7, limit));
      for (const bool of_got : {false, true})
        expect_equal(fused_->plain_error(s, 1e-3, 1e-4, of_got),
                     by_operators::plain_error(d, 1e-3, 1e-4, of_got));
    }
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
  use_fused_metrics(nullptr);
  EXPECT_EQ(kernels.second, operators.second);
  ASSERT_EQ(kernels.first.size(), operators.first.size());
  const size_t by_value = kernels.first.size() - 2 * kernels::kExponents;
  const auto& most = operators.first[0];
  for (size_t g = 0; g < kernels.first.size(); ++g) {
    const auto &a = kernels.first[g], &b = operators.first[g];
    // Hundreds of thousands of groups: an EXPECT for each would take longer than the sums.
    const bool errors =
        equal_sums(a.e, b.e, std::sqrt(most.e2 * static_cast<double>(count))) && equal_sums(a.e2, b.e2, b.e2);
    const bool products =
        g >= by_value || (equal_sums(a.et, b.et, std::sqrt(most.e2t2 * static_cast<double>(count))) &&
                          equal_sums(a.e2t2, b.e2t2, b.e2t2));
    if (!errors || !products)
      ADD_FAILURE() << "group " << g << ": got e " << a.e << ", e2 " << a.e2 << ", et " << a.et << ", e2t2 "
                    << a.e2t2 << ", expected " << b.e << ", " << b.e2 << ", " << b.et << ", " << b.e2t2;
  }
}

TEST(FusedMetricsSumsTest, EverySliceHasTheOperatorsSums) {
  const std::vector<std::vector<int64_t>> shapes = {
      {100},         {128},        {5003},    {70001},     {50, 30, 7}, {3, 1, 5, 2},  {1, 4099, 3},
      {4, 33000, 2}, {2, 3, 9001}, {1000, 2}, {2, 100000}, {100000, 2}, {9, 1, 70007}, {7, 8, 9, 10, 2}};
  for (const auto& sizes : shapes)
    for (const bool agreed : {false, true}) {
      SCOPED_TRACE(fmt::format("[{}]", fmt::join(sizes, ", ")));
      expect_equal_sums(sizes, at::kBFloat16, agreed);
    }
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
