#include "nereid/compiler/ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nereid/compiler/ir/value.h"

namespace nereid::compiler {
namespace {

const Extents kExtents{6, 10};
Index dim(int dimension) { return Index::dimension(dimension); }

TEST(Exprs, EqualExpressionsAreOne) {
  Exprs exprs;
  const Value x(exprs, exprs.load(0, {dim(0), dim(1)}, DType::kF32));
  EXPECT_EQ((x * 2 + 1).id(), (x * 2 + 1).id());
  EXPECT_NE((x * 2 + 1).id(), (x * 2 + 2).id());
}

TEST(Exprs, WhatChangesNothingIsLeftOut) {
  Exprs exprs;
  const Value x(exprs, exprs.load(0, {dim(0)}, DType::kF32));
  EXPECT_EQ((x * 1).id(), x.id());
  EXPECT_EQ((x + 0).id(), x.id());
  EXPECT_EQ((x / 1).id(), x.id());
  const Value yes(exprs, exprs.integer(1, DType::kBool)), no(exprs, exprs.integer(0, DType::kBool));
  EXPECT_EQ(yes.where(x, x * 2).id(), x.id());
  EXPECT_EQ((yes & (x > 0)).id(), (x > 0).id());
  EXPECT_EQ((no | (x > 0)).id(), (x > 0).id());
  // Zero times an infinite x is no zero.
  EXPECT_NE((x * 0).id(), x.constant(0).id());
}

TEST(Exprs, WhatALaterExtremumCoversIsLeftOut) {
  Exprs exprs;
  const Value x(exprs, exprs.load(0, {dim(0)}, DType::kF32)), y(exprs, exprs.load(1, {dim(0)}, DType::kF32));
  EXPECT_EQ(maximum(maximum(x, 0), 0).id(), maximum(x, 0).id());
  EXPECT_EQ(maximum(maximum(x, 1), 2).id(), maximum(x, 2).id());
  EXPECT_EQ(minimum(minimum(x, 1), 2).id(), minimum(x, 1).id());
  EXPECT_EQ(clamp(x.apply(Fn::kSigmoid), 0, 1).id(), x.apply(Fn::kSigmoid).id());
  EXPECT_EQ(maximum(x * x, 0).id(), (x * x).id());
  EXPECT_EQ(x.apply(Fn::kAbs).apply(Fn::kAbs).id(), x.apply(Fn::kAbs).id());
  const Value condition = x > 0;
  EXPECT_EQ(condition.where(condition.where(x, y), y * 2).id(), condition.where(x, y * 2).id());
  // Of a NaN nothing is covered, and of other numbers not this.
  EXPECT_NE(minimum(maximum(x, 2), 1).id(), x.constant(1).id());
  EXPECT_NE(maximum(x * y, 0).id(), (x * y).id());
  EXPECT_NE(clamp(x.apply(Fn::kTanh), 0, 1).id(), x.apply(Fn::kTanh).id());
}

TEST(Exprs, ConstantsAreFolded) {
  Exprs exprs;
  const Value two(exprs, exprs.constant(2));
  EXPECT_EQ(exprs[(two * 3 + 1).id()].number, 7);
  EXPECT_EQ(exprs[two.apply(Fn::kExp).id()].number, std::exp(2.0));
  EXPECT_EQ(exprs[two.cast(DType::kI64).id()].integer, 2);
}

TEST(Exprs, EveryFunctionOfOneNumberIsKnown) {
  Exprs exprs;
  const auto of = [&](Fn fn, double x) {
    const Expr& e = exprs[exprs.apply(fn, {exprs.constant(x)})];
    EXPECT_EQ(e.kind, Expr::Kind::kConstant) << info(fn).name;
    return e.number;
  };
  for (int fn = 0; fn <= static_cast<int>(Fn::kCast); ++fn)
    if (const FnInfo& known = info(static_cast<Fn>(fn));
        known.arity == 1 && known.fn != Fn::kCast && known.fn != Fn::kIsInf)
      of(known.fn, 0.75);
  EXPECT_EQ(of(Fn::kTf32, 0), 0);
  EXPECT_EQ(of(Fn::kTf32, 1 + 0x1p-11), 1 + 0x1p-10) << "half away from zero";
  EXPECT_EQ(of(Fn::kTf32, -(1 + 0x1p-12)), -1);
  EXPECT_EQ(of(Fn::kHalf, 1 + 0x1p-11), 1) << "half to even";
  EXPECT_EQ(of(Fn::kHalf, 0x1p-24 * 1.25), 0x1p-24) << "subnormal";
  EXPECT_EQ(of(Fn::kHalf, 65519), 65504);
  EXPECT_EQ(of(Fn::kHalf, -65520), -std::numeric_limits<double>::infinity());
}

TEST(Exprs, ComparisonsOfNumbersAreKnown) {
  Exprs exprs;
  const ExprId three = exprs.integer(3), zero = exprs.integer(0),
               huge = exprs.integer((int64_t{1} << 53) + 1);
  const ExprId yes = exprs.integer(1, DType::kBool), no = exprs.integer(0, DType::kBool);
  EXPECT_EQ(exprs.apply(Fn::kLess, {three, zero}), no);
  EXPECT_EQ(exprs.apply(Fn::kLessEqual, {zero, three}), yes);
  EXPECT_EQ(exprs.apply(Fn::kEqual, {three, three}), yes);
  EXPECT_EQ(exprs.apply(Fn::kNotEqual, {three, three}), no);
  // One that a double does not hold is left to the kernel.
  EXPECT_EQ(exprs[exprs.apply(Fn::kLess, {three, huge})].kind, Expr::Kind::kApply);
}

TEST(Exprs, ANumberIsNotWhatSizesMakeOfIt) {
  Exprs exprs;
  const Size n = Size::dimension(48);
  const ExprId made = exprs.constant(Ratio{.over = 1, .under = n});
  EXPECT_NE(made, exprs.constant(1.0 / 48)) << "the author's";
  EXPECT_EQ(exprs[exprs.constant(1.0 / 48)].ratio, nullptr);
  EXPECT_EQ(made, exprs.constant(Ratio{.over = 1, .under = n}));
  EXPECT_EQ(exprs[made].ratio->text(), "(1 / {48*48})");
  // n / n is one for every n, also where it comes first.
  EXPECT_EQ(exprs.constant(Ratio{.over = n, .under = n}), exprs.constant(1.0));
  EXPECT_EQ(exprs[exprs.constant(1.0)].ratio, nullptr);
}

TEST(Exprs, ATruthValueIsNotComparedTwice) {
  Exprs exprs;
  const Value flag(exprs, exprs.load(0, {dim(0)}, DType::kBool)),
      x(exprs, exprs.load(1, {dim(0)}, DType::kF32));
  EXPECT_EQ(negated(equal(flag, 0)).id(),
            exprs.apply(Fn::kNotEqual, {flag.id(), exprs.integer(0, DType::kBool)}));
  EXPECT_EQ(negated(equal(flag, 0)).id(), flag.id());
  EXPECT_EQ(negated(equal(x, 0)).id(), x.apply(Fn::kNotEqual, x.constant(0)).id());
}

TEST(Exprs, WithinIsKnownFromBounds) {
  Exprs exprs;
  EXPECT_EQ(exprs.within(dim(1), 0, 10, kExtents), exprs.integer(1, DType::kBool));
  EXPECT_EQ(exprs.within(dim(1) + Index(10), 0, 10, kExtents), exprs.integer(0, DType::kBool));
  EXPECT_EQ(exprs[exprs.within(dim(1) - Index(1), 0, 10, kExtents)].kind, Expr::Kind::kWithin);
}

TEST(Exprs, SubstitutionReachesEveryIndex) {
  Exprs exprs;
  const Value x(exprs, exprs.load(0, {dim(0), dim(1)}, DType::kF32));
  const Value masked = Value(exprs, exprs.within(dim(1), 0, 5, kExtents)).where(x, x.constant(0));
  const ExprId swapped = exprs.substitute(masked.id(), {dim(1), dim(0)}, {10, 6});
  const Value y(exprs, exprs.load(0, {dim(1), dim(0)}, DType::kF32));
  EXPECT_EQ(swapped, Value(exprs, exprs.within(dim(0), 0, 5, {10, 6})).where(y, y.constant(0)).id());
}

TEST(Exprs, AnIndexThatTheKernelKnowsGoesThroughSums) {
  Exprs exprs;
  const Value x(exprs, exprs.load(0, {dim(0) * 2 + Index(1), dim(1)}, DType::kF32));
  const Value row(exprs, exprs.load(1, {dim(1)}, DType::kI64));
  const auto read = exprs.substitute(x.id(), {Index(), dim(1)}, {row.id(), exprs.integer(0)}, kExtents);
  ASSERT_TRUE(read.has_value());
  const Expr& load = exprs[*read];
  EXPECT_EQ(load.at[0], Index(1));
  EXPECT_EQ(load.args.at(0), (row * 2).id());
  // Under a quotient it is no sum: that cannot be said.
  const ExprId half = exprs.load(0, {quotient(dim(0), 2, kExtents), dim(1)}, DType::kF32);
  EXPECT_FALSE(exprs.substitute(half, {Index(), dim(1)}, {row.id(), exprs.integer(0)}, kExtents).has_value());
}

TEST(Exprs, AKnownIndexIsNoLoad) {
  Exprs exprs;
  const ExprId direct = exprs.load(0, {dim(0) + Index(3)}, DType::kF32);
  EXPECT_EQ(exprs.load(0, {dim(0)}, DType::kF32, {exprs.integer(3)}), direct);
  EXPECT_EQ(exprs.load(0, {Index(3)}, DType::kF32, {exprs.index(dim(0))}), direct);
}

// As a sorting network has them: every step reads both results of the step before.
TEST(Exprs, BoundsOfAChainOfExtremaAreFoundOnce) {
  Exprs exprs;
  ExprId low = exprs.load(0, {dim(0)}, DType::kF32), high = exprs.load(1, {dim(0)}, DType::kF32);
  low = exprs.apply(Fn::kSigmoid, {low}), high = exprs.apply(Fn::kSigmoid, {high});
  for (int i = 0; i < 200; ++i) {
    const ExprId least = exprs.apply(Fn::kMin, {low, high}), most = exprs.apply(Fn::kMax, {low, high});
    low = exprs.apply(Fn::kNeg, {most}), high = exprs.apply(Fn::kNeg, {least});
  }
  EXPECT_EQ(exprs.apply(Fn::kMin, {high, exprs.constant(1, DType::kF32)}), high);
}

}  // namespace
}  // namespace nereid::compiler
