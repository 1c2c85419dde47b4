#include "nereid/replay/worker/compare.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>

#include "nereid/replay/worker/inputs.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::DType;

// A truth in float64, the reference's own f32 a little off it, and the candidate's answer.
struct Case {
  at::Tensor truth = at::linspace(-3, 5, 1000, at::TensorOptions().dtype(c10::kDouble));
  at::Tensor own = truth.mul(1 + 0x1p-22).to(c10::kFloat);
  at::Tensor got = own.clone();

  OutputComparison compare(const Tolerance& tolerance = {}, std::vector<at::Tensor> nearby = {}) const {
    return replay::compare({dtype_of(own.scalar_type()), got, own, truth, std::move(nearby), 0}, tolerance);
  }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CompareTest, FourTimesTheOwnErrorIsAllowedAndNoMore) {
  Case c;
  c.got = c.truth.mul(1 + 3.5 * 0x1p-22).to(c10::kFloat);
  EXPECT_TRUE(c.compare().agrees) << c.compare().reason;
  c.got = c.truth.mul(1 + 200 * 0x1p-22).to(c10::kFloat);
  c.got[999] *= 1.001;
  const auto wrong = c.compare();
  EXPECT_FALSE(wrong.agrees);
  EXPECT_GT(wrong.error, wrong.error_limit);
  EXPECT_EQ(wrong.worst, std::vector<int64_t>{999});
  EXPECT_EQ(wrong.dtype, "f32");
}

TEST(CompareTest, OneElementIsEnough) {
  Case c;
  c.got[417] += 0.01;
  const auto wrong = c.compare();
  EXPECT_EQ(wrong.wrong, 1);
  EXPECT_EQ(wrong.first_wrong, std::vector<int64_t>{417});
  EXPECT_NEAR(wrong.first_got - wrong.first_want, 0.01, 1e-4);
}

TEST(CompareTest, OneElementsNormIsForgivenWhatTheElementIs) {
  const auto off_by = [](int64_t elements, double ulps) {
    Case c;
    c.truth = at::full({elements}, 1.0, at::TensorOptions().dtype(c10::kDouble));
    c.own = c.truth.to(c10::kFloat);
    c.got = c.truth.mul(1 + ulps * 0x1p-23).to(c10::kFloat);
    return c.compare();
  };
  EXPECT_TRUE(off_by(1, 12).agrees);
  EXPECT_FALSE(off_by(1, 20).agrees);
  EXPECT_TRUE(off_by(1000, 3).agrees);
  EXPECT_FALSE(off_by(1000, 12).agrees);  // all of them to the same side
}

TEST(CompareTest, PositionsAreOfTheOutputsShape) {
  Case c;
  c.truth = c.truth.view({10, 4, 25}), c.own = c.own.view({10, 4, 25}),
  c.got = c.got.clone().view({10, 4, 25});
  c.got[3][2][7] = 100;
  EXPECT_EQ(c.compare().worst, (std::vector<int64_t>{3, 2, 7}));
}

TEST(CompareTest, StridesDoNotMatter) {
  Case c;
  c.truth = c.truth.view({10, 100}), c.own = c.own.view({10, 100});
  c.got = c.own.t().contiguous().t();
  EXPECT_TRUE(c.compare().agrees);
}

TEST(CompareTest, WhatIsNotFiniteMustBeTheSame) {
  Case c;
  for (auto* tensor : {&c.truth, &c.own, &c.got}) (*tensor)[5] = kInfinity, (*tensor)[6] = kNan;
  EXPECT_TRUE(c.compare().agrees) << c.compare().reason;
  EXPECT_EQ(c.compare().undefined, 0);
  c.got[5] = -kInfinity;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{5});
  c.got[5] = kInfinity, c.got[6] = 0;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{6});
  c.got[6] = kNan, c.got[7] = kNan;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{7});
  EXPECT_EQ(c.compare().error, kInfinity);
}

TEST(CompareTest, WhereTheReferenceIsNotDefinedNothingIsJudged) {
  Case c;
  c.own[9] = kNan, c.got[9] = 12345;
  EXPECT_TRUE(c.compare().agrees);
  EXPECT_EQ(c.compare().undefined, 1);
}

TEST(CompareTest, WhatHangsOnANonFiniteInputIsNotJudgedButItsNeighboursAre) {
  Case c;
  c.own[2] = c.truth[2] = kNan, c.own[3] = c.truth[3] = kInfinity;
  auto huge = c.truth.clone();
  huge[2] = 1e9, huge[3] = 1e9, huge[4] = 7;  // the truth of 4 depends on the input's NaN, although it is a number
  const auto run = [&] {
    return compare({dtype_of(c.own.scalar_type()), c.got, c.own, c.truth, {}, 0, {huge}}, {});
  };
  c.got[2] = 0, c.got[3] = kNan, c.got[4] = 99;
  EXPECT_TRUE(run().agrees) << run().reason;
  EXPECT_EQ(run().undefined, 3);
  c.got[5] = kNan;
  EXPECT_EQ(run().first_wrong, std::vector<int64_t>{5}) << "a NaN leaked";
}

TEST(CompareTest, OverflowOfTheDtypeIsWhatTheTruthSays) {
  Case c;
  c.truth[0] = 1e39, c.own[0] = kInfinity, c.got[0] = kInfinity;
  EXPECT_TRUE(c.compare().agrees) << "1e39 is infinite in f32";
  c.got[0] = 3e38;
  EXPECT_FALSE(c.compare().agrees);
}

TEST(CompareTest, IntegersAreExactOrTheTruths) {
  const auto own = at::arange(10), truth = own.clone();
  truth[3] = 33;
  auto got = own.clone();
  const auto run = [&] { return compare({DType::kI64, got, own, truth, {}, 0}, {}); };
  EXPECT_TRUE(run().agrees);
  got[3] = 33;
  EXPECT_TRUE(run().agrees);
  got[4] = 5;
  EXPECT_EQ(run().first_wrong, std::vector<int64_t>{4});
}

TEST(CompareTest, RtolAndAtolReplaceTheRule) {
  Case c;
  c.got = c.own.add(0.01);
  EXPECT_FALSE(c.compare().agrees);
  EXPECT_TRUE(c.compare({.rtol = {}, .atol = 0.02}).agrees);
  EXPECT_FALSE(c.compare({.rtol = 1e-6, .atol = {}}).agrees);
}

TEST(CompareTest, NearbyTruthsWidenTheOwnError) {
  Case c;
  c.got = c.truth.mul(1.001).to(c10::kFloat);
  EXPECT_FALSE(c.compare().agrees);
  EXPECT_TRUE(c.compare({}, {c.truth.mul(1.0005)}).agrees);
}

TEST(InputsTest, KindsKeepSignsAndRanges) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  for (int k = 1; k <= static_cast<int>(InputKind::kFlipped); ++k) {
    const auto kind = static_cast<InputKind>(k);
    auto unit = at::rand({40, 50});
    const auto before = unit.clone();
    const bool applied = apply_kind(unit, kind, generator);
    EXPECT_EQ(applied, !at::equal(unit, before)) << to_string(kind);
    if (kind >= InputKind::kInfinities) continue;
    EXPECT_GE(unit.min().item().toDouble(), 0) << to_string(kind);
    EXPECT_LE(unit.max().item().toDouble(), 1) << to_string(kind);
  }
  auto integers = at::arange(10);
  EXPECT_FALSE(apply_kind(integers, InputKind::kZeros, generator));
  auto signs = at::randn({64});
  EXPECT_FALSE(apply_kind(signs, InputKind::kFlipped, generator));
  EXPECT_TRUE(apply_kind(signs, InputKind::kNegative, generator));
  EXPECT_LE(signs.max().item().toDouble(), 0);
}

TEST(InputsTest, OnlyConstantsArePerturbed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  auto ones = at::ones({100}), zeros = at::zeros({100}), random = at::randn({100});
  EXPECT_TRUE(perturb(ones, generator));
  EXPECT_GT(ones.min().item().toDouble(), 0.7);
  EXPECT_GT(ones.std().item().toDouble(), 0.05);
  EXPECT_TRUE(perturb(zeros, generator));
  EXPECT_GT(zeros.std().item().toDouble(), 0.1);
  EXPECT_FALSE(perturb(random, generator));
}

}  // namespace
}  // namespace nereid::replay
