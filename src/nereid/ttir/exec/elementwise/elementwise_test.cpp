#include "nereid/ttir/exec/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace nereid::ttir {
namespace {

double ulps(float got, double expected) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : 1e9;
  if (static_cast<double>(got) == expected) return 0;
  const float rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  int exponent;
  std::frexp(std::max(std::abs(expected), 0x1p-126), &exponent);
  return std::abs(static_cast<double>(got) - expected) / std::ldexp(1.0, exponent - 24);
}

TEST(Elementwise, ExpIsWithinTwoUlpsEverywhere) {
  std::vector<float> x = {0.0f,   -0.0f,   1.0f,    88.7f,   88.72f, 88.73f,   89.0f,     1e30f, -87.3f,
                          -87.4f, -100.0f, -103.9f, -104.1f, -1e30f, INFINITY, -INFINITY, NAN};
  std::mt19937 random(3);
  std::uniform_real_distribution<float> wide(-110.0f, 95.0f), near(-1.0f, 1.0f);
  for (int k = 0; k < 200000; ++k) x.push_back(k % 2 == 0 ? wide(random) : near(random));
  std::vector<float> y(x.size());
  unary_kernel(OpKind::kExp, Elem::kF32)(y.data(), x.data(), static_cast<int64_t>(x.size()));
  for (size_t k = 0; k < x.size(); ++k)
    ASSERT_LE(ulps(y[k], std::exp(static_cast<double>(x[k]))), 2.0) << x[k] << " gives " << y[k];
}

TEST(Elementwise, FunctionsAreWithinFourUlps) {
  const std::pair<OpKind, double (*)(double)> functions[] = {
      {OpKind::kExp2, std::exp2},   {OpKind::kLog, std::log},   {OpKind::kLog2, std::log2},
      {OpKind::kSin, std::sin},     {OpKind::kCos, std::cos},   {OpKind::kTanh, std::tanh},
      {OpKind::kErf, std::erf},     {OpKind::kSqrt, std::sqrt}, {OpKind::kAtan, std::atan},
      {OpKind::kLog1p, std::log1p}, {OpKind::kCbrt, std::cbrt}, {OpKind::kExpm1, std::expm1}};
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 5.0f);
  std::vector<float> x(4099), y(4099);
  for (float& v : x) v = normal(random);
  for (const auto& [kind, exact] : functions) {
    unary_kernel(kind, Elem::kF32)(y.data(), x.data(), 4099);
    for (size_t k = 0; k < x.size(); ++k)
      ASSERT_LE(ulps(y[k], exact(static_cast<double>(x[k]))), 4.0) << to_string(kind) << " of " << x[k];
  }
}

// Every operation on i8 against arithmetic in wider integers, exhaustively, in all three ways of giving
// operands.
TEST(Elementwise, BytesExhaustively) {
  const auto check = [](OpKind kind, auto expected) {
    const auto kernel = binary_kernel(kind, Elem::kI8);
    for (int a = -128; a < 128; ++a)
      for (int b = -128; b < 128; ++b) {
        const auto x = static_cast<int8_t>(a), y = static_cast<int8_t>(b);
        const auto want = static_cast<int8_t>(expected(a, b));
        for (const Uniform u : {Uniform::kNeither, Uniform::kFirst, Uniform::kSecond}) {
          int8_t got = 0;
          kernel(&got, &x, &y, 1, u);
          ASSERT_EQ(got, want) << to_string(kind) << " " << a << " " << b;
        }
      }
  };
  const auto u8 = [](int v) { return v & 255; };
  check(OpKind::kAddi, [](int a, int b) { return a + b; });
  check(OpKind::kSubi, [](int a, int b) { return a - b; });
  check(OpKind::kMuli, [](int a, int b) { return a * b; });
  check(OpKind::kDivsi, [](int a, int b) { return b == 0 ? -1 : a / b; });
  check(OpKind::kRemsi, [](int a, int b) { return b == 0 ? a : a % b; });
  check(OpKind::kDivui, [&](int a, int b) { return b == 0 ? -1 : u8(a) / u8(b); });
  check(OpKind::kRemui, [&](int a, int b) { return b == 0 ? a : u8(a) % u8(b); });
  check(OpKind::kFloordivsi,
        [](int a, int b) { return b == 0 ? -1 : static_cast<int>(std::floor(static_cast<double>(a) / b)); });
  check(OpKind::kCeildivsi,
        [](int a, int b) { return b == 0 ? -1 : static_cast<int>(std::ceil(static_cast<double>(a) / b)); });
  check(OpKind::kMinsi, [](int a, int b) { return std::min(a, b); });
  check(OpKind::kMaxui, [&](int a, int b) { return u8(a) > u8(b) ? a : b; });
  check(OpKind::kShli, [&](int a, int b) { return u8(b) >= 8 ? 0 : a << u8(b); });
  check(OpKind::kShrsi, [&](int a, int b) { return a >> std::min(u8(b), 7); });
  check(OpKind::kShrui, [&](int a, int b) { return u8(b) >= 8 ? 0 : u8(a) >> u8(b); });
  check(OpKind::kMulhiui, [&](int a, int b) { return (u8(a) * u8(b)) >> 8; });
  check(OpKind::kXori, [](int a, int b) { return a ^ b; });
}

TEST(Elementwise, DivisionOf32BitsAtItsCorners) {
  const int32_t corners[] = {INT32_MIN, INT32_MIN + 1, -65537,        -3,       -1, 0, 1, 2,
                             7,         65536,         INT32_MAX - 1, INT32_MAX};
  for (const int32_t a : corners)
    for (const int32_t b : corners) {
      int32_t q = 0, r = 0;
      binary_kernel(OpKind::kDivsi, Elem::kI32)(&q, &a, &b, 1, Uniform::kNeither);
      binary_kernel(OpKind::kRemsi, Elem::kI32)(&r, &a, &b, 1, Uniform::kNeither);
      const auto wide = static_cast<int64_t>(a);
      EXPECT_EQ(q, b == 0 ? -1 : static_cast<int32_t>(wide / b)) << a << " / " << b;
      EXPECT_EQ(r, b == 0 ? a : static_cast<int32_t>(wide % b)) << a << " % " << b;
    }
}

TEST(Elementwise, ComparisonsOfFloatsWithNan) {
  const float values[] = {-1.0f, 0.0f, 1.0f, INFINITY, NAN};
  const auto compare = [](const char* name, float a, float b) {
    uint8_t r = 7;
    compare_kernel(predicate_named(name, true), Elem::kF32)(&r, &a, &b, 1, Uniform::kNeither);
    return r;
  };
  for (const float a : values)
    for (const float b : values) {
      const bool unordered = std::isnan(a) || std::isnan(b);
      EXPECT_EQ(compare("olt", a, b), !unordered && a < b);
      EXPECT_EQ(compare("ult", a, b), unordered || a < b);
      EXPECT_EQ(compare("oge", a, b), !unordered && a >= b);
      EXPECT_EQ(compare("uge", a, b), unordered || a >= b);
      EXPECT_EQ(compare("one", a, b), !unordered && a != b);
      EXPECT_EQ(compare("une", a, b), unordered || a != b);
      EXPECT_EQ(compare("ueq", a, b), unordered || a == b);
      EXPECT_EQ(compare("uno", a, b), unordered);
      EXPECT_EQ(compare("ord", a, b), !unordered);
    }
}

TEST(Elementwise, MinimaAndMaximaWithNan) {
  const auto apply = [](OpKind kind, float a, float b) {
    float r = 0;
    binary_kernel(kind, Elem::kF32)(&r, &a, &b, 1, Uniform::kNeither);
    return r;
  };
  EXPECT_EQ(apply(OpKind::kMaxnumf, NAN, 1.0f), 1.0f);
  EXPECT_EQ(apply(OpKind::kMaxnumf, 1.0f, NAN), 1.0f);
  EXPECT_TRUE(std::isnan(apply(OpKind::kMaximumf, NAN, 1.0f)));
  EXPECT_TRUE(std::isnan(apply(OpKind::kMaximumf, 1.0f, NAN)));
  EXPECT_EQ(apply(OpKind::kMinnumf, NAN, 1.0f), 1.0f);
  EXPECT_TRUE(std::isnan(apply(OpKind::kMinimumf, 1.0f, NAN)));
  EXPECT_EQ(apply(OpKind::kMinimumf, 2.0f, 1.0f), 1.0f);
}

TEST(Elementwise, MatmulOfAnyShape) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> small(-4, 4);
  for (const int64_t m : {1, 4, 6, 7, 16, 19})
    for (const int64_t n : {1, 8, 16, 17, 33, 64})
      for (const int64_t k : {1, 5, 32}) {
        std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
            c(static_cast<size_t>(m * n), 1.0f), want(c);
        for (float& v : a) v = static_cast<float>(small(random));
        for (float& v : b) v = static_cast<float>(small(random));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            for (int64_t p = 0; p < k; ++p)
              want[static_cast<size_t>(i * n + j)] +=
                  a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
        matmul_f32(a.data(), k, b.data(), n, c.data(), n, m, n, k);
        ASSERT_EQ(c, want) << m << " x " << n << " x " << k;
      }
}

TEST(Elementwise, SumsAndExtremes) {
  std::vector<float> x(1000);
  std::iota(x.begin(), x.end(), -500.0f);
  for (const int64_t n : {1, 7, 63, 64, 65, 1000}) {
    EXPECT_EQ(sum_f32(x.data(), n), static_cast<float>(n) * (-500.0f + static_cast<float>(n - 1) / 2));
    EXPECT_EQ(max_f32(x.data(), n), -501.0f + static_cast<float>(n));
    EXPECT_EQ(min_f32(x.data(), n), -500.0f);
  }
}

}  // namespace
}  // namespace nereid::ttir
