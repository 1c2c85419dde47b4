#include "nereid/replay/worker/compare/error_statistics.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

at::Tensor normal(std::vector<int64_t> sizes, int seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return at::randn(sizes, at::kDouble);
}

// What compare() says of an answer in bf16 whose reference rounds the truth and nothing else.
OutputComparison compared(const at::Tensor& truth, const at::Tensor& answer,
                          c10::ScalarType type = c10::kBFloat16) {
  return compare({.dtype = dtype_of(type),
                  .got = answer.to(type),
                  .own = truth.to(type),
                  .truth = truth,
                  .coarse = true},
                 {});
}

TEST(ErrorStatisticsTest, RoundingAloneIsNeverRefused) {
  for (int seed = 0; seed < 40; ++seed) {
    const auto truth = normal({32, 24, 16}, seed);
    // Errors of their own, as large as rounding's: another place was rounded besides.
    const auto noise = normal({32, 24, 16}, seed + 1000).mul(truth.abs()).mul(0x1p-10);
    for (const auto& answer : {truth, truth.add(noise)}) {
      const auto result = compared(truth, answer);
      EXPECT_TRUE(result.agrees) << result.reason;
    }
  }
}

TEST(ErrorStatisticsTest, AGainBelowAnUlpIsSeen) {
  const auto truth = normal({64, 256}, 1);
  EXPECT_FALSE(compared(truth, truth.mul(1.003)).agrees);
  EXPECT_FALSE(compared(truth, truth.mul(0.9985)).agrees);
  EXPECT_TRUE(compared(truth, truth.mul(1 + 1e-6)).agrees);
}

// What is between a truncated answer and the truth is right, and half as much beyond; no other gain is.
TEST(ErrorStatisticsTest, TruncationIsForgivenToItsSideAlone) {
  const auto truth = normal({64, 256}, 9);
  const auto noise = normal({64, 256}, 10).mul(truth).mul(0x1p-12);
  const auto agrees = [&](double gain) {
    OutputTensors tensors{.dtype = trace::DType::kF32,
                          .got = truth.mul(1 + gain).add(noise).to(c10::kFloat),
                          .own = truth.to(c10::kFloat),
                          .truth = truth,
                          .coarse = true,
                          .tf32 = true};
    const auto rounded = truth.add(normal({64, 256}, 11).mul(truth).mul(0x1p-12));
    const auto cut = truth.mul(1 - 7e-4).add(normal({64, 256}, 12).mul(truth).mul(0x1p-12));
    widen(tensors, rounded, ErrorStatistics::Sample::kNoise);
    widen(tensors, cut, ErrorStatistics::Sample::kShift);
    return compare(tensors, {}).agrees;
  };
  for (const double gain : {0.0, -3e-4, -7e-4, -9e-4, 2e-4}) EXPECT_TRUE(agrees(gain)) << gain;
  for (const double gain : {6e-4, 1.3e-3, -1.3e-3}) EXPECT_FALSE(agrees(gain)) << gain;
}

// Of a relu's zeros TF32 makes a few other numbers, in one answer more than in another by chance.
TEST(ErrorStatisticsTest, AFewZerosMayBeNumbersInTf32) {
  const auto truth = normal({64, 256}, 13).clamp_min(0);
  const auto agrees = [&](int64_t others, bool tf32) {
    auto answer = truth.add(normal({64, 256}, 14).mul(truth).mul(0x1p-12)).flatten();
    const auto zeros = truth.flatten().eq(0).nonzero().flatten().slice(0, 0, std::nullopt, 8000 / others);
    answer.index_fill_(0, zeros, 5e-4);
    OutputTensors tensors{.dtype = trace::DType::kF32,
                          .got = answer.view_as(truth).to(c10::kFloat),
                          .own = truth.to(c10::kFloat),
                          .truth = truth,
                          .coarse = true,
                          .tf32 = tf32};
    widen(tensors, truth.add(normal({64, 256}, 15).mul(truth).mul(0x1p-12)), ErrorStatistics::Sample::kNoise);
    return compare(tensors, {}).agrees;
  };
  EXPECT_TRUE(agrees(20, true));
  EXPECT_FALSE(agrees(20, false));
  EXPECT_FALSE(agrees(1000, true));
}

TEST(ErrorStatisticsTest, AMeanErrorIsSeenInOneSlice) {
  const auto truth = normal({64, 512}, 2);
  auto answer = truth.clone();
  answer.select(0, 17).mul_(1.004);
  const auto result = compared(truth, answer);
  EXPECT_FALSE(result.agrees);
  EXPECT_NE(result.systematic.find("index 17 of dimension 0"), std::string::npos) << result.systematic;
}

TEST(ErrorStatisticsTest, SmallRowsHaveTheirOwnScale) {
  auto truth = normal({32, 128}, 3);
  truth.select(0, 5).mul_(1e-4);
  auto answer = truth.clone();
  answer.select(0, 5).mul_(1.05);
  EXPECT_FALSE(compared(truth, answer).agrees);
}

TEST(ErrorStatisticsTest, WhatIsSystematicInTheReferenceIsForgiven) {
  const auto truth = normal({64, 256}, 4);
  const auto rows = normal({64, 1}, 5).mul(0x1p-9).add(1), others = normal({64, 1}, 6).mul(0x1p-9).add(1);
  OutputTensors tensors{.dtype = trace::DType::kBF16,
                        .got = truth.mul(rows).to(c10::kBFloat16),
                        .own = truth.to(c10::kBFloat16),
                        .truth = truth,
                        .coarse = true};
  EXPECT_FALSE(compare(tensors, {}).agrees);
  tensors.own = truth.mul(others).to(c10::kBFloat16), tensors.statistics.reset();
  EXPECT_TRUE(compare(tensors, {}).agrees) << compare(tensors, {}).reason;
}

TEST(ErrorStatisticsTest, RangesAndThreadsChangeNothing) {
  const auto truth = normal({50, 30, 7}, 7), answer = truth.mul(1 + 0x1p-8);
  const std::vector<int64_t> sizes = {50, 30, 7};
  const auto sums = [&](int64_t chunk, bool by_operators = false) {
    ErrorStatistics statistics(sizes, trace::DType::kBF16, 1, by_operators);
    auto found = statistics.zeros();
    const auto t = truth.reshape({-1}), a = answer.reshape({-1});
    for (int64_t first = 0; first < t.numel(); first += chunk) {
      const auto size = std::min(chunk, t.numel() - first);
      const auto part = t.narrow(0, first, size);
      const ElementRange range{part, part, part, {}, 1e30};
      statistics.add_truth(range, first);
      statistics.add_error(found, range, a.narrow(0, first, size).contiguous(), first);
    }
    return found;
  };
  const auto whole = sums(1 << 20), parts = sums(64), operators = sums(1000, true);
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].e, parts[i].e, 1e-12);
    EXPECT_NEAR(whole[i].e, operators[i].e, 1e-12);
    EXPECT_NEAR(whole[i].e2t, operators[i].e2t, 1e-12);
    EXPECT_NEAR(whole[i].e2t2, parts[i].e2t2, 1e-12);
  }
}

TEST(ErrorStatisticsTest, OnAGpuTheSameIsFound) {
  const auto truth = normal({40, 64}, 9).reshape({-1}), answer = truth.mul(1.004);
  std::vector<std::string> found;
  for (const bool by_operators : {false, true}) {
    ErrorStatistics statistics({40, 64}, trace::DType::kBF16, 1, by_operators);
    const ElementRange range{answer, truth, truth, {}, 1e30};
    statistics.add_truth(range, 0);
    auto own = statistics.zeros(), got = statistics.zeros();
    statistics.add_error(own, range, truth.to(c10::kBFloat16).to(c10::kDouble), 0);
    statistics.add_sample(own);
    statistics.add_error(got, range, answer, 0);
    const auto error = statistics.check(got, statistics_limits(trace::DType::kBF16, true, false));
    ASSERT_TRUE(error);
    found.push_back(error->text);
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(ErrorStatisticsTest, TruncationIsNotRounding) {
  const auto truth = normal({64, 256}, 8);
  const auto cut = truth.to(c10::kFloat).view(c10::kInt).bitwise_and(-65536).view(c10::kFloat);
  EXPECT_FALSE(compared(truth, cut.to(c10::kDouble)).agrees);
}

}  // namespace
}  // namespace nereid::replay
