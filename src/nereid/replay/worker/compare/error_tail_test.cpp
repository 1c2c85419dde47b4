#include "nereid/replay/worker/compare/error_tail.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr double kFactor = 64, kFloor = 0x1p-19;

ElementRange range_of(const at::Tensor& truth) {
  return {truth, truth, truth, {}, std::numeric_limits<double>::max()};
}

// Errors of elements whose conditions are as different as cancellation makes them: one in `rare` is a
// thousand times wider.
at::Tensor errors(const at::Tensor& conditions) {
  return at::randn(conditions.sizes(), at::kDouble).mul(conditions);
}
at::Tensor conditions(int64_t count, double rare) {
  const auto wide = at::rand({count}, at::kDouble).lt(rare);
  return at::rand({count}, at::kDouble).mul(2).exp().mul(1e-7).mul(at::where(wide, 1000.0, 1.0));
}

TEST(ErrorTailTest, CountsByPowersOfTwo) {
  const auto truth = at::zeros({6}, at::kDouble);
  auto answer = at::zeros({6}, at::kDouble);
  const double off[] = {0, 1.5, 0.25, -0.25, 0.3, 0x1p-63};
  for (int i = 0; i < 6; ++i) answer[i] = off[i];
  const auto tail = error_tail(range_of(truth), answer, 1);
  EXPECT_EQ(tail.counts[0], 1);
  EXPECT_EQ(tail.counts[1], 1);
  EXPECT_EQ(tail.counts[2], 4);
  EXPECT_EQ(tail.counts[62], 4);
  EXPECT_EQ(tail.counts[63], 5);
}

TEST(ErrorTailTest, OperatorsCountWhatLoopsCount) {
  at::manual_seed(1);
  for (const bool agreed : {false, true}) {
    auto truth = at::randn({5000}, at::kDouble);
    auto answer = truth.mul(at::rand({5000}, at::kDouble).mul(-50).exp().add(1)).to(c10::kFloat);
    answer[3] = std::numeric_limits<double>::infinity();
    answer[4] = truth[4] = std::numeric_limits<double>::quiet_NaN();
    truth[5] = 1e300;
    answer[6] += 1e4;
    ElementRange range = range_of(truth);
    range.largest = 3e38;
    if (agreed) range.agreed = at::rand({5000}).lt(0.9);
    const auto by_loops = error_tail(range, answer.to(c10::kDouble), 0.1);
    EXPECT_EQ(by_loops.counts, error_tail(range, answer, 0.1).counts);
    EXPECT_GT(by_loops.counts[63], 4000);
  }
}

TEST(ErrorTailTest, OtherRoundingOfTheSameElementsIsNoExcess) {
  at::manual_seed(2);
  for (int draw = 0; draw < 500; ++draw) {
    const auto truth = at::randn({600}, at::kDouble);
    const auto condition = conditions(600, draw % 3 == 0 ? 0.5 : 0.01);
    // Sums in another order: errors are up to eight times as large.
    const auto own = error_tail(range_of(truth), truth.add(errors(condition)), 1);
    const auto got = error_tail(range_of(truth), truth.add(errors(condition), 8), 1);
    EXPECT_FALSE(excess(got, own, kFactor, kFloor)) << draw;
  }
}

TEST(ErrorTailTest, WhatIsSmallAgainstTheWidestElementAndLargeAgainstMostIsFound) {
  at::manual_seed(3);
  const auto truth = at::randn({600}, at::kDouble);
  const auto condition = conditions(600, 0.01);
  const auto own = error_tail(range_of(truth), truth.add(errors(condition)), 1);
  const auto fault = at::rand({600}, at::kDouble).mul(1e-3);
  const auto found = excess(error_tail(range_of(truth), truth.add(fault), 1), own, kFactor, kFloor);
  ASSERT_TRUE(found);
  EXPECT_GT(found->elements, found->allowed);
  EXPECT_GT(found->error, 1e-5);
  EXPECT_LT(found->error, 1e-3);
}

TEST(ErrorTailTest, AFewElementsAreJudgedByWhatRightAnswersErrByThere) {
  at::manual_seed(5);
  const auto truth = at::randn({600}, at::kDouble);
  const auto range = range_of(truth);
  const auto condition = conditions(600, 0.01);
  const auto relative = [&](const at::Tensor& answer) {
    SampleErrors sample;
    sample.add(range, answer, 1, 600);
    return sample;
  };
  SampleErrors all;
  for (int i = 0; i < 7; ++i) all.widen(relative(truth.add(errors(condition))));
  const auto& samples = all.largest;
  const double least = 4 * samples.max().item().toDouble() + kFloor;
  auto got = truth.add(errors(condition), 20);
  EXPECT_FALSE(local_excess(relative(got).largest, samples, least, 256, kFloor));
  const auto narrow = samples.argmin().item().toLong();
  got[narrow] += 2 * least * std::max(1.0, std::abs(truth[narrow].item().toDouble()));
  const auto found = local_excess(relative(got).largest, samples, least, 256, kFloor);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 1);
  EXPECT_GT(found->error, found->limit);
}

TEST(ErrorTailTest, ComparisonRefusesThatOnOtherInputsAndNotWhereASampleShowsIt) {
  at::manual_seed(4);
  const auto truth = at::randn({600}, at::kDouble);
  const auto condition = conditions(600, 0.01);
  OutputTensors tensors{.dtype = trace::DType::kF32,
                        .got = truth.add(at::rand({600}, at::kDouble).mul(2e-4)).to(c10::kFloat),
                        .own = truth.add(errors(condition)).to(c10::kFloat),
                        .truth = truth,
                        .other_inputs = true};
  Tolerance tolerance;
  tolerance.slack = 16;
  const auto found = compare(tensors, tolerance);
  EXPECT_EQ(found.wrong, 0) << found.reason;
  EXPECT_FALSE(found.agrees);
  EXPECT_NE(found.reason.find("elements are off by more than"), std::string::npos) << found.reason;
  widen(tensors, truth.add(at::rand({600}, at::kDouble).mul(1e-5)));
  EXPECT_TRUE(compare(tensors, tolerance).agrees);
}

}  // namespace
}  // namespace nereid::replay
