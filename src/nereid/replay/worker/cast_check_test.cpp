#include "nereid/replay/worker/cast_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

using trace::DType;

at::Tensor floats(std::vector<double> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return at::from_blob(numbers.data(), {count}, at::TensorOptions().dtype(c10::kDouble)).to(c10::kFloat);
}

TEST(CastCheckTest, WholeNumbersInRangeKeepTheirValue) {
  EXPECT_FALSE(cast_changes(floats({0, 1, -7, 1e9, -0.0}), DType::kI32));
  EXPECT_TRUE(cast_changes(floats({0, 1, 2.5}), DType::kI32));
  EXPECT_TRUE(cast_changes(floats({-0.25}), DType::kI64));
  EXPECT_TRUE(cast_changes(floats({254.5}), DType::kU8));
  EXPECT_FALSE(cast_changes(floats({0, 255}).to(c10::kHalf), DType::kU8));
}

TEST(CastCheckTest, BooleansAreZeroAndOne) {
  EXPECT_FALSE(cast_changes(floats({0, 1, 1, -0.0}), DType::kBool));
  EXPECT_TRUE(cast_changes(floats({0, 1, 2}), DType::kBool));
  EXPECT_TRUE(cast_changes(floats({std::numeric_limits<double>::quiet_NaN()}), DType::kBool));
  EXPECT_TRUE(cast_changes(floats({0, 3}).to(c10::kInt), DType::kBool));
  EXPECT_FALSE(cast_changes(floats({0, 1}).to(c10::kLong), DType::kBool));
}

TEST(CastCheckTest, IntegersWrapAndFloatsBeyondTheRangeAreUndefined) {
  EXPECT_TRUE(cast_changes(floats({300}).to(c10::kLong), DType::kI8));
  EXPECT_FALSE(cast_changes(floats({-128, 127}).to(c10::kLong), DType::kI8));
  EXPECT_FALSE(cast_changes(floats({1e20, -1e20}), DType::kI64));
  EXPECT_FALSE(cast_changes(floats({std::numeric_limits<double>::infinity()}), DType::kI32));
  EXPECT_FALSE(cast_changes(floats({std::numeric_limits<double>::quiet_NaN()}), DType::kI32));
}

}  // namespace
}  // namespace nereid::replay
