#include "nereid/ttir/ptx/approximate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest error over random operands of [low, high], and the mean of the signed ones in units of it.
struct Errors {
  double largest = 0, bias = 0;
};
Errors errors(float low, float high, const std::function<double(float)>& error) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(low, high);
  Errors e;
  constexpr int kDraws = 20000;
  double sum = 0;
  for (int k = 0; k < kDraws; ++k) {
    const double at = error(draw(random));
    e.largest = std::max(e.largest, std::abs(at));
    sum += at / kDraws;
  }
  e.bias = std::abs(sum) / e.largest;
  return e;
}
Errors relative_errors(Approximate op, float low, float high, double (*exact)(double)) {
  return errors(low, high, [=](float a) {
    return static_cast<double>(approximate(op, a, false)) / exact(static_cast<double>(a)) - 1;
  });
}
Errors absolute_errors(Approximate op, float low, float high, double (*exact)(double)) {
  return errors(low, high, [=](float a) {
    return static_cast<double>(approximate(op, a, false)) - exact(static_cast<double>(a));
  });
}

// The bound holds, and the model makes use of it.
void expect_bound(const Errors& e, double bound, double used = 0.55) {
  EXPECT_LE(e.largest, bound);
  EXPECT_GE(e.largest, used * bound);
  EXPECT_LE(e.bias, 0.2);
}

TEST(Approximate, ErrorsAreThoseOfTheManual) {
  expect_bound(relative_errors(Approximate::kEx2, -20, 20, std::exp2), std::exp2(-22.5));
  expect_bound(relative_errors(Approximate::kTanh, -3, 3, std::tanh), std::exp2(-11), 0.9);
  expect_bound(relative_errors(Approximate::kSqrt, 1e-3f, 1e6f, std::sqrt), std::exp2(-23));
  expect_bound(relative_errors(Approximate::kRsqrt, 1e-3f, 1e6f, [](double x) { return 1 / std::sqrt(x); }),
               std::exp2(-22.9));
  expect_bound(relative_errors(Approximate::kRcp, -1e4f, 1e4f, [](double x) { return 1 / x; }),
               std::exp2(-23));
  expect_bound(relative_errors(Approximate::kLg2, 4, 1e8f, std::log2), std::exp2(-22));
  expect_bound(absolute_errors(Approximate::kLg2, 0.51f, 1.99f, std::log2), std::exp2(-22.6));
}

TEST(Approximate, SinesLoseDigitsFarOut) {
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  for (const auto op : {Approximate::kSin, Approximate::kCos}) {
    double (*exact)(double) = cosine;
    if (op == Approximate::kSin) exact = sine;
    expect_bound(absolute_errors(op, -6.28f, 6.28f, exact), std::exp2(-20.5), 0.9);
    expect_bound(absolute_errors(op, -314, 314, exact), std::exp2(-14.7), 0.9);
    EXPECT_GT(absolute_errors(op, 1e6f, 2e6f, exact).largest, 0.1);
  }
  EXPECT_GT(approximate(Approximate::kSin, 1e-10f, false), 0);
  EXPECT_TRUE(std::isnan(approximate(Approximate::kSin, kInfinity, false)));
  EXPECT_EQ(approximate(Approximate::kCos, 0, false), 1);
}

TEST(Approximate, Division) {
  const auto divided = [](float a, float b) { return approximate(Approximate::kDiv, a, false, b); };
  expect_bound(errors(0.1f, 100, [&](float a) { return double(divided(3, a)) / (3 / double(a)) - 1; }),
               2 * std::exp2(-23), 0.3);
  EXPECT_EQ(divided(0x1p127f, 0x1.8p126f), 0);
  EXPECT_TRUE(std::signbit(divided(-0x1p127f, 0x1.8p126f)));
  EXPECT_TRUE(std::isnan(divided(kInfinity, 0x1.8p126f)));
  EXPECT_EQ(divided(1, kInfinity), 0);
  EXPECT_EQ(divided(1, 0), kInfinity);
  EXPECT_NEAR(approximate(Approximate::kDivFull, 0x1p127f, true, 0x1p126f), 2, 1e-6);
}

TEST(Approximate, SpecialValuesAreExact) {
  EXPECT_EQ(approximate(Approximate::kEx2, 0, true), 1);
  EXPECT_EQ(approximate(Approximate::kEx2, -1e-42f, true), 1);
  EXPECT_EQ(approximate(Approximate::kEx2, -kInfinity, true), 0);
  EXPECT_EQ(approximate(Approximate::kEx2, 128, true), kInfinity);
  EXPECT_EQ(approximate(Approximate::kEx2, -130, true), 0);
  EXPECT_GT(approximate(Approximate::kEx2, -130, false), 0);
  EXPECT_EQ(approximate(Approximate::kLg2, 0, true), -kInfinity);
  EXPECT_EQ(approximate(Approximate::kLg2, 1e-42f, true), -kInfinity);
  EXPECT_TRUE(std::isnan(approximate(Approximate::kLg2, -1, true)));
  EXPECT_EQ(approximate(Approximate::kRcp, 1e-42f, true), kInfinity);
  EXPECT_EQ(approximate(Approximate::kRcp, -kInfinity, true), 0);
  EXPECT_EQ(approximate(Approximate::kTanh, kInfinity, false), 1);
  EXPECT_LE(std::abs(approximate(Approximate::kTanh, 20, false)), 1);
  EXPECT_EQ(approximate(Approximate::kRsqrt, 0, true), kInfinity);
  EXPECT_EQ(approximate(Approximate::kSqrt, 0, true), 0);
}

TEST(Approximate, NarrowFloats) {
  const auto error = [](Approximate op, Elem elem, double bound) {
    return errors(-4, 4,
                  [=](float a) {
                    const double x = to_double(from_double(static_cast<double>(a), elem), elem);
                    const double exact = op == Approximate::kTanh ? std::tanh(x) : std::exp2(x);
                    const double got =
                        to_double(approximate_bits(op, elem, from_double(x, elem), true), elem);
                    return op == Approximate::kTanh ? got - exact : got / exact - 1;
                  })
               .largest /
           bound;
  };
  for (const double used : {error(Approximate::kTanh, Elem::kF16, std::exp2(-10.987)),
                            error(Approximate::kTanh, Elem::kBF16, std::exp2(-8)),
                            error(Approximate::kEx2, Elem::kF16, std::exp2(-9.9)),
                            error(Approximate::kEx2, Elem::kBF16, std::exp2(-7))}) {
    EXPECT_LE(used, 1);
    EXPECT_GE(used, 0.5);
  }
}

TEST(Approximate, FastFunctions) {
  EXPECT_NEAR(fast::exp(3), std::exp(3), 3e-5);
  EXPECT_EQ(fast::exp(-100), 0);              // .ftz
  EXPECT_TRUE(std::isnan(fast::pow(-2, 2)));  // by way of a logarithm
  EXPECT_NEAR(fast::pow(2, 0.5f), std::sqrt(2.0), 1e-6);
  EXPECT_EQ(fast::divide(1e38f, 2e38f), 0);
  EXPECT_NEAR(fast::tan(0.7f), std::tan(0.7), 5e-6);
}

}  // namespace
}  // namespace nereid::ttir
