#include "nereid/replay/worker/compare/compare.h"

#include <gtest/gtest.h>

#include <limits>

#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/trial/undecided_elements.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::DType;

// A truth in float64, the reference's own f32 a little off it, and the candidate's answer.
struct Case {
  at::Tensor truth = at::linspace(-3, 5, 1000, at::TensorOptions().dtype(c10::kDouble));
  at::Tensor own = truth.mul(1 + 0x1p-22).to(c10::kFloat);
  at::Tensor got = own.clone();

  OutputTensors tensors() const { return {dtype_of(own.scalar_type()), got, own, truth}; }
  OutputComparison compare(const Tolerance& tolerance = {},
                           const std::vector<at::Tensor>& nearby = {}) const {
    auto all = tensors();
    for (const auto& near : nearby) widen(all, near);
    return replay::compare(all, tolerance);
  }
};

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
  for (auto* tensor : {&c.truth, &c.own, &c.got}) (*tensor)[5] = kInfinity, (*tensor)[6] = NAN;
  EXPECT_TRUE(c.compare().agrees) << c.compare().reason;
  EXPECT_EQ(c.compare().undefined, 0);
  c.got[5] = -kInfinity;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{5});
  c.got[5] = kInfinity, c.got[6] = 0;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{6});
  c.got[6] = NAN, c.got[7] = NAN;
  EXPECT_EQ(c.compare().first_wrong, std::vector<int64_t>{7});
  EXPECT_EQ(c.compare().error, kInfinity);
}

TEST(CompareTest, WhereTheReferenceIsNotDefinedNothingIsJudged) {
  Case c;
  c.own[9] = NAN, c.got[9] = 12345;
  EXPECT_TRUE(c.compare().agrees);
  EXPECT_EQ(c.compare().undefined, 1);
}

TEST(CompareTest, WhatHangsOnANonFiniteInputIsNotJudgedButItsNeighboursAre) {
  Case c;
  c.own[2] = c.truth[2] = NAN, c.own[3] = c.truth[3] = kInfinity;
  auto huge = c.truth.clone();
  huge[2] = 1e9, huge[3] = 1e9,
  huge[4] = 7;  // the truth of 4 depends on the input's NaN, although it is a number
  const auto run = [&] {
    auto tensors = c.tensors();
    keep_agreeing(tensors.agreed, c.truth, huge);
    return compare(tensors, {});
  };
  c.got[2] = 0, c.got[3] = NAN, c.got[4] = 99;
  EXPECT_TRUE(run().agrees) << run().reason;
  EXPECT_EQ(run().undefined, 3);
  c.got[5] = NAN;
  EXPECT_EQ(run().first_wrong, std::vector<int64_t>{5}) << "a NaN leaked";
}

TEST(CompareTest, AnOrderSensitiveElementIsNotJudgedButItsNeighboursAre) {
  Case c;
  c.truth[0] = 1e39, c.own[0] = kInfinity, c.got[0] = -kInfinity;
  c.truth[1] = 3e38, c.own[1] = 3e38, c.got[1] = kInfinity;
  c.truth[2] = c.own[2] = c.got[2] = NAN;
  auto order_checked = c.truth.clone();
  const auto run = [&](bool any) {
    auto tensors = c.tensors();
    EXPECT_EQ(mark_undefined(tensors, order_checked), any);
    return compare(tensors, {});
  };
  EXPECT_FALSE(run(false).agrees);
  order_checked[0] = NAN, order_checked[1] = NAN;
  EXPECT_TRUE(run(true).agrees) << run(true).reason;
  EXPECT_EQ(run(true).undefined, 2);
  c.got[2] = 1;
  EXPECT_EQ(run(true).first_wrong, std::vector<int64_t>{2}) << "NaN in every order";
  c.got[2] = NAN, c.got[3] = kInfinity;
  EXPECT_EQ(run(true).first_wrong, std::vector<int64_t>{3});
}

TEST(CompareTest, AnIndexOfAnOrderSensitiveNumberIsNotJudged) {
  const auto own = at::arange(10), truth = own.clone();
  auto got = own.clone(), order_checked = own.clone();
  got[3] = 5, order_checked[3] = 7;
  OutputTensors tensors{DType::kI64, got, own, truth};
  EXPECT_FALSE(compare(tensors, {}).agrees);
  EXPECT_TRUE(mark_undefined(tensors, order_checked));
  EXPECT_TRUE(compare(tensors, {}).agrees);
  got[4] = 5;
  EXPECT_FALSE(compare(tensors, {}).agrees);
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
  const auto run = [&] { return compare({DType::kI64, got, own, truth}, {}); };
  EXPECT_TRUE(run().agrees);
  got[3] = 33;
  EXPECT_TRUE(run().agrees);
  got[4] = 5;
  truth[3] = 3;
  EXPECT_FALSE(run().agrees);
  EXPECT_EQ(run().first_wrong, std::vector<int64_t>{3});
}

TEST(CompareTest, RtolAndAtolReplaceTheRule) {
  Case c;
  c.got = c.own.add(0.01);
  EXPECT_FALSE(c.compare().agrees);
  EXPECT_TRUE(c.compare({.rtol = {}, .atol = 0.02}).agrees);
  EXPECT_FALSE(c.compare({.rtol = 1e-6, .atol = {}}).agrees);
}

// torch.allclose(own, got, t, t), with t = 1e-4 of float32 and 1e-2 of bf16.
TEST(CompareTest, KernelBenchsRuleIsAllclose) {
  Case c;
  Tolerance rule;
  rule.kernelbench = true;
  c.own = at::full({100}, 2.0, at::kFloat), c.truth = c.own.to(c10::kDouble).add(1);
  c.got = c.own.clone();
  EXPECT_TRUE(c.compare(rule).agrees) << "the truth has no say";
  c.got[7] = 2.00029;
  EXPECT_TRUE(c.compare(rule).agrees);
  c.got[7] = 2.00031;
  EXPECT_FALSE(c.compare(rule).agrees);
  c.own = c.own.to(c10::kBFloat16), c.got = c.own.mul(1.01);
  EXPECT_TRUE(c.compare(rule).agrees);
  c.got = c.own.mul(1.03);
  EXPECT_FALSE(c.compare(rule).agrees);
}

TEST(CompareTest, AnotherChoiceIsTakenWhereTheCandidateMadeIt) {
  Case c;
  auto other = c.truth.clone();
  other[3] = 40, other[4] = 50;
  c.got[3] = 40;
  auto tensors = c.tensors();
  EXPECT_FALSE(compare(tensors, {}).agrees);
  adopt_nearest(tensors, other);
  EXPECT_TRUE(compare(tensors, {}).agrees) << compare(tensors, {}).reason;
  c.got[5] = 60;
  tensors = c.tensors();
  adopt_nearest(tensors, other);
  EXPECT_FALSE(compare(tensors, {}).agrees);
}

TEST(CompareTest, HowMuchIsLookedAtAtOnceDoesNotMatter) {
  Case c;
  c.got = c.truth.mul(1 + 3 * 0x1p-22).to(c10::kFloat);
  c.got[417] += 0.01, c.got[3] = NAN;
  auto tensors = c.tensors();
  widen(tensors, c.truth.mul(1 + 0x1p-21));
  keep_agreeing(tensors.agreed, c.truth, c.truth.index_fill(0, at::full({1}, 8, c10::kLong), 5));
  const auto whole = compare(tensors, {});
  EXPECT_EQ(whole.wrong, 2);
  EXPECT_EQ(whole.undefined, 1);
  for (const int64_t chunk : {1, 7, 333, 999}) {
    const auto parts = compare(tensors, {}, chunk);
    EXPECT_EQ(parts.wrong, whole.wrong);
    EXPECT_EQ(parts.undefined, whole.undefined);
    EXPECT_EQ(parts.first_wrong, whole.first_wrong);
    EXPECT_EQ(parts.worst, whole.worst);
    EXPECT_EQ(parts.error, whole.error);
    EXPECT_EQ(parts.own_error, whole.own_error);
    EXPECT_EQ(parts.error_limit, whole.error_limit);
    EXPECT_EQ(parts.max_absolute_error, whole.max_absolute_error);
    EXPECT_NEAR(parts.own_norm_error, whole.own_norm_error, 1e-12 * whole.own_norm_error);
  }
}

TEST(CompareTest, NearbyTruthsWidenTheOwnError) {
  Case c;
  c.got = c.truth.mul(1.001).to(c10::kFloat);
  EXPECT_FALSE(c.compare().agrees);
  EXPECT_TRUE(c.compare({}, {c.truth.mul(1.0005)}).agrees);
}

// The place of a maximum: exact where rounding has no say in it, else as often another as errors may be
// larger.
TEST(CompareTest, IntegersThatRoundingDecides) {
  const auto truth = at::arange(1000);
  const auto with = [&](int64_t first, int64_t last, int64_t number) {
    return truth.index_fill(0, at::arange(first, last), number);
  };
  OutputTensors tensors{.dtype = trace::DType::kI64, .got = with(0, 1, 7), .own = truth, .truth = truth};
  const auto exact = compare(tensors, {});
  EXPECT_FALSE(exact.agrees);
  EXPECT_EQ(exact.wrong, 1);
  EXPECT_EQ(exact.reason, "1 of 1000 elements are other numbers, at most 0 allowed");
  tensors.own = with(500, 503, 2);  // three are undecided
  tensors.got = with(0, 12, 5000);
  EXPECT_TRUE(compare(tensors, {}).agrees);
  tensors.got = with(0, 13, 5000);
  EXPECT_FALSE(compare(tensors, {}).agrees);
  EXPECT_FALSE(compare(tensors, {}, 7).agrees);
  EXPECT_FALSE(compare(tensors, {.rtol = 1.0, .atol = 1.0}).agrees);
  widen(tensors, with(100, 104, 1));
  EXPECT_TRUE(compare(tensors, {}).agrees);
}

TEST(InputsTest, KindsKeepSignsAndSayWhereRangesAreLeft) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  for (int k = 1; k <= static_cast<int>(InputDistribution::kRedrawn); ++k) {
    const auto kind = static_cast<InputDistribution>(k);
    auto unit = at::rand({40, 50});
    const auto before = unit.clone();
    bool widened = false;
    const bool applied = apply_distribution(unit, kind, generator, &widened);
    EXPECT_EQ(applied, !at::equal(unit, before)) << to_string(kind);
    if (kind == InputDistribution::kInfinities || kind == InputDistribution::kNans) continue;
    const bool negative = kind == InputDistribution::kFlipped || kind == InputDistribution::kLarge;
    EXPECT_EQ(unit.min().item().toDouble() < 0, negative) << to_string(kind);
    const bool larger = kind == InputDistribution::kHuge || kind == InputDistribution::kOutliers ||
                        kind == InputDistribution::kWide || kind == InputDistribution::kRamp ||
                        kind == InputDistribution::kLarge || kind == InputDistribution::kShifted ||
                        kind == InputDistribution::kFar;
    EXPECT_EQ(unit.max().item().toDouble() > 1, larger) << to_string(kind);
    EXPECT_EQ(widened, unit.min().item().toDouble() < 0 || unit.max().item().toDouble() > 1)
        << to_string(kind);
  }
  auto integers = at::arange(10);
  EXPECT_FALSE(apply_distribution(integers, InputDistribution::kZeros, generator));
  auto signs = at::randn({64});
  EXPECT_FALSE(apply_distribution(signs, InputDistribution::kFlipped, generator));
  EXPECT_TRUE(apply_distribution(signs, InputDistribution::kNegative, generator));
  EXPECT_LE(signs.max().item().toDouble(), 0);
}

TEST(InputsTest, LargeTensorsAreChangedInPartsAsIfWhole) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  const auto fresh = [] { return at::rand({3, 3'000'001}).sub_(0.5).t(); };
  auto one_hot = at::rand({3, 3'000'001});
  EXPECT_TRUE(apply_distribution(one_hot, InputDistribution::kOneHot, generator));
  EXPECT_TRUE(one_hot.sum(1).eq(1).all().item().toBool());
  EXPECT_EQ(one_hot.argmax(1)[2].item().toLong(), 2 * 7 + 3);
  auto ramp = fresh();
  const auto low = ramp.min().item().toFloat(), high = ramp.max().item().toFloat();
  EXPECT_TRUE(apply_distribution(ramp, InputDistribution::kRamp, generator));
  const auto flat = ramp.reshape({-1});
  EXPECT_TRUE(flat.diff().ge(0).all().item().toBool());
  EXPECT_FLOAT_EQ(flat[0].item().toFloat(), low);
  EXPECT_FLOAT_EQ(flat[-1].item().toFloat(), high);
  auto nans = fresh();
  EXPECT_TRUE(apply_distribution(nans, InputDistribution::kNans, generator));
  const auto where = nans.isnan().reshape({-1}).nonzero().reshape({-1});
  EXPECT_TRUE(where.diff().eq(64).all().item().toBool());
  EXPECT_NEAR(static_cast<double>(where.numel()), 9'000'003 / 64.0, 1);
}

TEST(InputsTest, RampsLeaveTheRangeOfPositiveNumbers) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  bool widened = false;
  auto shares = at::rand({1000});
  const double high = shares.max().item().toDouble();
  EXPECT_TRUE(apply_distribution(shares, InputDistribution::kRamp, generator, &widened));
  EXPECT_TRUE(widened);
  EXPECT_NEAR(shares.max().item().toDouble(), 4 * high, 0.1);
}

TEST(InputsTest, RowsAreScaledAndShiftedAndPutOnAGrid) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  const auto own = at::randn({70, 3, 40});
  auto large = own.clone(), shifted = own.clone(), grid = own.clone();
  EXPECT_TRUE(apply_distribution(large, InputDistribution::kLarge, generator));
  const auto factors = large.div(own);
  EXPECT_LT(factors.div(factors.narrow(2, 0, 1)).sub(1).abs().max().item().toDouble(), 1e-5);
  EXPECT_GE(factors.min().item().toDouble(), 1.99);
  EXPECT_LE(factors.max().item().toDouble(), 128.1);
  EXPECT_GT(factors.max().item().toDouble(), 64);
  EXPECT_TRUE(apply_distribution(shifted, InputDistribution::kShifted, generator));
  const auto shifts = shifted.sub(own);
  EXPECT_LT(shifts.sub(shifts.narrow(2, 0, 1)).abs().max().item().toDouble(), 1e-5);
  EXPECT_GT(shifts.min().item().toDouble(), 5.7);
  EXPECT_LT(shifts.max().item().toDouble(), 12.7);
  EXPECT_TRUE(apply_distribution(grid, InputDistribution::kGrid, generator));
  EXPECT_TRUE(grid.mul(2).eq(grid.mul(2).round()).all().item().toBool());
  EXPECT_LE(grid.sub(own).abs().max().item().toDouble(), 0.25);
  auto nothing = at::zeros({8});
  EXPECT_FALSE(apply_distribution(nothing, InputDistribution::kShifted, generator));
  EXPECT_FALSE(apply_distribution(nothing, InputDistribution::kGrid, generator));
}

TEST(InputsTest, RowsAreFarOnOneSide) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  bool widened = false;
  auto rows = at::randn({70, 40}), other = rows.clone();
  EXPECT_TRUE(apply_distribution(rows, InputDistribution::kFar, generator, &widened));
  EXPECT_TRUE(widened);
  EXPECT_GE(rows.abs().min().item().toDouble(), 0x1p40);
  EXPECT_TRUE(rows.sign().sum(1).abs().eq(40).all().item().toBool()) << "each row is of one sign";
  EXPECT_EQ(rows.sign().sum().item().toDouble(), 0);
  auto whole = other.clone();
  EXPECT_TRUE(apply_distribution(whole, InputDistribution::kFar, generator, nullptr, {.whole = true}));
  EXPECT_LT(whole.max().item().toDouble(), 0);
  EXPECT_TRUE(apply_distribution(other, InputDistribution::kFar, generator, nullptr, {.first = false}));
  EXPECT_GT(other.min().item().toDouble(), 0);
  auto half = at::randn({70, 40}).to(at::kHalf), shares = at::rand({70, 40});
  EXPECT_TRUE(apply_distribution(half, InputDistribution::kFar, generator));
  EXPECT_TRUE(half.isfinite().all().item().toBool());
  EXPECT_GE(half.abs().min().item().toDouble(), 12000);
  EXPECT_TRUE(apply_distribution(shares, InputDistribution::kFar, generator));
  EXPECT_GT(shares.min().item().toDouble(), 0);
  auto masked = at::full({8}, -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(apply_distribution(masked, InputDistribution::kFar, generator));
}

TEST(InputsTest, BoundedRowsAreFarAndOfOneSize) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  auto rows = at::randn({70, 40}), half = rows.to(at::kHalf);
  for (auto* tensor : {&rows, &half})
    EXPECT_TRUE(apply_distribution(*tensor, InputDistribution::kFar, generator, nullptr,
                                   {.beyond_squares = true, .bounded = 0x1p-10}));
  EXPECT_GE(rows.abs().min().item().toDouble(), 0x1p30);
  EXPECT_LE(rows.abs().max().item().toDouble(), 1.25 * 0x1p30);
  EXPECT_LT(rows.min().item().toDouble(), 0);
  EXPECT_GE(half.abs().min().item().toDouble(), 8);
  EXPECT_LE(half.abs().max().item().toDouble(), 10);
}

TEST(InputsTest, RowsAreCloseToOneNumber) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  auto rows = at::randn({96, 40}), other = at::randn({96, 40});
  for (auto* tensor : {&rows, &other})
    EXPECT_TRUE(
        apply_distribution(*tensor, InputDistribution::kClose, generator, nullptr, {.bounds = {0.5, 7}}));
  const auto spread = rows.amax(1).sub(rows.amin(1)).div(rows.abs().amax(1));
  EXPECT_LE(spread.max().item().toDouble(), 0x1p-11);
  EXPECT_GT(spread.min().item().toDouble(), 0x1p-13);
  EXPECT_TRUE(rows.sub(other).abs().le(rows.abs().mul(0x1p-11)).all().item().toBool())
      << "two inputs are close to each other";
  const auto at_bound = rows.sub(0.5).abs().lt(0x1p-11).all(1).sum().item().toLong();
  EXPECT_EQ(at_bound, 48) << "half of the rows lie at the bound that is in range";
  EXPECT_LT(rows.min().item().toDouble(), -1);
  auto half = at::randn({64}).to(at::kHalf), nothing = at::zeros({64});
  EXPECT_FALSE(apply_distribution(half, InputDistribution::kClose, generator));
  EXPECT_FALSE(apply_distribution(nothing, InputDistribution::kClose, generator));
}

TEST(InputsTest, OneNumberBecomesAnotherOne) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  for (const double was : {1.0, 0.0, -2.5}) {
    int changed = 0;
    for (int k = 1; k <= static_cast<int>(InputDistribution::kGrid); ++k) {
      auto one = at::full({}, was, at::kFloat);
      const bool applied = apply_distribution(one, static_cast<InputDistribution>(k), generator);
      EXPECT_EQ(applied, one.item().toDouble() != was) << was << " " << k;
      EXPECT_LT(std::abs(one.item().toDouble()), 21);
      changed += applied;
    }
    EXPECT_GE(changed, 5) << was;
  }
}

TEST(InputsTest, ConstantsArePerturbed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  auto ones = at::ones({100}), zeros = at::zeros({100}), random = at::randn({100}),
       scale = at::full({100}, -1e-6);
  for (auto* change : {perturb_constant, perturb}) {
    EXPECT_TRUE(change(ones.fill_(1), generator));
    EXPECT_GT(ones.min().item().toDouble(), 0.7);
    EXPECT_GT(ones.std().item().toDouble(), 0.05);
    EXPECT_TRUE(change(zeros.zero_(), generator));
    EXPECT_GT(zeros.std().item().toDouble(), 0.1);
    EXPECT_TRUE(change(scale.fill_(-1e-6), generator));
    EXPECT_LT(scale.max().item().toDouble(), -0.7) << "a LayerScale is brought to order one";
  }
  EXPECT_FALSE(perturb_constant(random, generator));
}

TEST(InputsTest, TablesArePerturbedWithinWhatTheyKeepTo) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  const auto far = [](const at::Tensor& now, const at::Tensor& was) {
    return now.sub(was).norm().item().toDouble() / was.norm().item().toDouble();
  };
  const auto eye = at::zeros({32, 32}).fill_diagonal_(1);
  auto identity = eye.clone();
  EXPECT_TRUE(perturb(identity, generator));
  EXPECT_GT(identity.min().item().toDouble(), 0) << "no zero is left";
  EXPECT_LE(identity.max().item().toDouble(), 1);
  EXPECT_GT(far(identity, eye), 0.1);
  const auto decay = at::rand({64}).mul_(0.1).add_(0.9);
  auto decays = decay.clone();
  EXPECT_TRUE(perturb(decays, generator));
  EXPECT_GT(far(decays, decay), 0.05);
  EXPECT_LE(decays.max().item().toDouble(), 1);
  const auto above = at::rand({64}).add_(1);
  auto still_above = above.clone();
  EXPECT_TRUE(perturb(still_above, generator));
  EXPECT_GE(still_above.min().item().toDouble(), 1);
  auto tiny = at::randn({64}).mul_(1e-5);
  EXPECT_TRUE(perturb(tiny, generator));
  EXPECT_GT(tiny.norm().item().toDouble(), 1) << "what hides its branch is brought to order one";
  auto mask = at::zeros({16, 16}).masked_fill_(at::ones({16, 16}).triu(1).ne(0), -INFINITY);
  EXPECT_TRUE(perturb(mask, generator));
  EXPECT_EQ(mask.isinf().sum().item().toLong(), 120) << "infinities stay";
  auto weights = at::randn({64, 64});
  const auto before = weights.clone();
  EXPECT_TRUE(widen_state(weights, true, generator));
  EXPECT_GT(weights.abs().max().item().toDouble(), 8);
  EXPECT_GT(weights.mul(before).lt(0).sum().item().toLong(), 1000);
  auto variance = at::rand({64});
  EXPECT_TRUE(widen_state(variance, false, generator));
  EXPECT_GT(variance.min().item().toDouble(), 0);
  for (const double number : {2.5, -0.3}) {
    auto one = at::full({1}, number);
    EXPECT_TRUE(widen_state(one, true, generator, true));
    EXPECT_GE(one.item().toDouble() / number, 2);
    EXPECT_LE(one.item().toDouble() / number, 16);
  }
}

TEST(NarrowTest, BringsWhatIsLargerNearer) {
  const auto x = at::tensor({0.5, -2.0, 4.0, -512.0, 131072.0, kInfinity, -kInfinity}, at::kDouble);
  narrow(x, 2, 0);
  EXPECT_EQ(x[3].item().toDouble(), -512);
  narrow(x, 2, 1);  // 2 (|x| / 2)^(1/2)
  const auto once =
      at::tensor({0.5, -2.0, 2 * std::sqrt(2), -32.0, 512.0, kInfinity, -kInfinity}, at::kDouble);
  EXPECT_TRUE(x.allclose(once)) << x;
  narrow(x, 2, 2);
  EXPECT_NEAR(x[4].item().toDouble(), 8, 1e-9);
  EXPECT_EQ(largest_size(at::tensor({1.0, -3.0, NAN, kInfinity}, at::kDouble)), 3);
  EXPECT_EQ(largest_size(at::tensor({int64_t{7}}, at::kLong)), 0);
}

TEST(OverflownTest, OnlyAnswersThatAreNoNumbersAreForgotten) {
  const auto truth = at::tensor({1.0, NAN, kInfinity, -kInfinity, NAN, kInfinity}, at::kDouble);
  const auto own = truth.to(at::kFloat);
  const auto got = at::tensor({1.0, kInfinity, NAN, kInfinity, NAN, 3e38}, at::kFloat);
  OutputTensors output{.dtype = trace::DType::kF32, .got = got, .own = own, .truth = truth};
  EXPECT_EQ(compare(output, {}).wrong, 4);
  EXPECT_EQ(forget_overflown(output, false), 3);
  const auto after = compare(output, {});
  EXPECT_EQ(after.wrong, 1);  // a number where the reference has none
  EXPECT_EQ(after.undefined, 3);
  EXPECT_EQ(after.first_wrong, std::vector<int64_t>{5});

  const auto numbers = at::tensor({1.0, 2.0, kInfinity, -kInfinity, 3.0, 3e38}, at::kFloat);
  OutputTensors attention{.dtype = trace::DType::kF32, .got = numbers, .own = own, .truth = truth};
  EXPECT_EQ(forget_overflown(attention, true), 2);
  EXPECT_EQ(compare(attention, {}).first_wrong, std::vector<int64_t>{5}) << "an infinity is none";
}

TEST(PolesTest, WhatRoundingMakesAnotherPoleIsForgotten) {
  const auto truth = at::tensor({1.0, NAN, kInfinity, kInfinity, 2.0, NAN}, at::kDouble);
  const auto rounded = at::tensor({1.5, kInfinity, -kInfinity, kInfinity, kInfinity, NAN}, at::kDouble);
  const auto got = at::tensor({1.0, -kInfinity, NAN, NAN, NAN, 0.0}, at::kFloat);
  OutputTensors output{.dtype = trace::DType::kF32, .got = got, .own = truth.to(at::kFloat), .truth = truth};
  EXPECT_EQ(compare(output, {}).wrong, 5);
  EXPECT_TRUE(forget_poles(output, rounded));
  const auto after = compare(output, {});
  EXPECT_EQ(after.wrong, 2);  // one infinity in all replays, one NaN
  EXPECT_EQ(after.undefined, 3);
  EXPECT_FALSE(forget_poles(output, output.truth));
}

}  // namespace
}  // namespace nereid::replay
