// Distributions of inputs: what each element becomes does not depend on how the tensor is stored.
#include "nereid/replay/worker/inputs/inputs.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/trial/trial_forward.h"

namespace nereid::replay {
namespace {

TEST(DistributionTest, TransposedTensorsBecomeWhatContiguousOnesDo) {
  using enum InputDistribution;
  // The last one is changed in several parts.
  const std::vector<std::vector<int64_t>> shapes = {{7, 5}, {4, 1, 9}, {3, 2, 4, 5}, {17, 1 << 18}};
  for (const auto& sizes : shapes)
    for (const auto kind : {kLarge, kShifted, kFar, kRamp, kGrid})
      for (const bool positive : {false, true})
        for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
          if (sizes.back() > 1000 && (type != at::kFloat || (positive && kind == kLarge))) continue;
          at::manual_seed(3);
          const auto drawn = at::randn(sizes, at::kFloat);
          const auto made = (positive ? drawn.abs() : drawn).to(type);
          auto contiguous = made.clone();
          auto transposed =
              at::empty({sizes.back(), made.numel() / sizes.back()}, made.options())
                  .t()
                  .view(sizes.size() == 2 ? at::IntArrayRef(sizes) : at::IntArrayRef({-1, sizes.back()}));
          transposed.copy_(made.view(transposed.sizes()));
          if (sizes.size() != 2) contiguous = contiguous.view(transposed.sizes());
          ASSERT_FALSE(transposed.is_contiguous() && transposed.size(0) > 1 && transposed.size(1) > 1);
          bool widened = false;
          EXPECT_EQ(apply_distribution(contiguous, kind, make_generator(5), &widened, {}),
                    apply_distribution(transposed, kind, make_generator(5), &widened, {}));
          // Signs are drawn in the order of memory.
          const bool drawn_alike = !(positive && kind == kLarge);
          EXPECT_TRUE((drawn_alike ? contiguous : contiguous.abs())
                          .equal(drawn_alike ? transposed : transposed.abs()))
              << to_string(kind) << " of " << sizes.size() << " dimensions";
          EXPECT_FALSE(contiguous.equal(made.view(contiguous.sizes())));
        }
}

TEST(DistributionTest, NumbersOf8BitsReachTheEndsOfTheirRange) {
  using enum InputDistribution;
  for (const auto& [type, most] :
       {std::pair(c10::kFloat8_e4m3fn, 448.0), std::pair(c10::kFloat8_e5m2, 57344.0)}) {
    const auto drawn = at::randn({32, 16}, at::kFloat).to(type);
    for (const auto kind : {kZeros, kNegative, kHuge, kOutliers, kWide, kLarge, kShifted}) {
      auto made = drawn.clone();
      EXPECT_TRUE(apply_distribution(made, kind, make_generator(5), nullptr, {})) << to_string(kind);
      const auto numbers = made.to(at::kFloat);
      EXPECT_TRUE(numbers.isfinite().all().item().toBool()) << to_string(kind);
      EXPECT_EQ(numbers.abs().max().item().toDouble() == most, kind == kHuge) << to_string(kind);
    }
    auto odd = drawn.clone();
    EXPECT_FALSE(apply_distribution(odd, kInfinities, make_generator(5), nullptr, {}));
  }
}

}  // namespace
}  // namespace nereid::replay
