#include "nereid/ttir/ir/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/parse/constant.h"

namespace nereid::ttir {
namespace {

const std::vector<Elem> kNarrow = {Elem::kF8E4M3FN,      Elem::kF8E5M2, Elem::kF8E4M3FNUZ, Elem::kF8E5M2FNUZ,
                                   Elem::kF8E4M3B11FNUZ, Elem::kBF16,   Elem::kF16};
uint32_t patterns(Elem e) { return elem_bytes(e) == 1 ? 256 : 65536; }

TEST(FloatFormats, EveryPatternComesBackFromItsValue) {
  for (const Elem e : kNarrow)
    for (uint32_t bits = 0; bits < patterns(e); ++bits) {
      const float value = to_float(bits, e);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(to_float(from_float(value, e), e))) << to_string(e) << " " << bits;
      else
        ASSERT_EQ(from_float(value, e), bits) << to_string(e) << " " << bits << " " << value;
    }
}

TEST(FloatFormats, KnownValues) {
  EXPECT_EQ(to_float(0x7e, Elem::kF8E4M3FN), 448.0f);
  EXPECT_EQ(to_float(0x7b, Elem::kF8E5M2), 57344.0f);
  EXPECT_EQ(to_float(0x01, Elem::kF8E4M3FN), 0x1p-9f);
  EXPECT_TRUE(std::isnan(to_float(0x7f, Elem::kF8E4M3FN)));
  EXPECT_TRUE(std::isinf(to_float(0x7c, Elem::kF8E5M2)));
  EXPECT_EQ(to_float(0x3c00, Elem::kF16), 1.0f);
  EXPECT_EQ(to_float(0x0001, Elem::kF16), 0x1p-24f);
  EXPECT_EQ(to_float(0x3f80, Elem::kBF16), 1.0f);
  EXPECT_EQ(from_float(1e9f, Elem::kF8E4M3FN, Rounding::kNearestEven, true), 0x7eu);
  EXPECT_EQ(from_float(-INFINITY, Elem::kF8E4M3FN, Rounding::kNearestEven, true), 0xfeu);
  EXPECT_EQ(from_float(1e9f, Elem::kF8E5M2, Rounding::kNearestEven, true), 0x7bu);
  EXPECT_EQ(from_float(NAN, Elem::kF8E4M3FN, Rounding::kNearestEven, true), 0x7fu);
  EXPECT_EQ(from_float(65520.0f, Elem::kF16), 0x7c00u);
  EXPECT_EQ(from_float(65519.0f, Elem::kF16), 0x7bffu);
  EXPECT_EQ(from_float(65519.0f, Elem::kF16, Rounding::kTowardZero), 0x7bffu);
}

// Between each two neighbours: just below the middle goes down, just above goes up, the middle to the even
// one.
TEST(FloatFormats, RoundsToNearestEvenBetweenAllNeighbours) {
  for (const Elem e : kNarrow) {
    for (uint32_t bits = 0; bits + 1 < patterns(e) / 2; ++bits) {
      const double low = to_double(bits, e), high = to_double(bits + 1, e);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double middle = (low + high) / 2;
      ASSERT_EQ(from_double(std::nextafter(middle, low), e), bits) << to_string(e) << " " << low;
      ASSERT_EQ(from_double(std::nextafter(middle, high), e), bits + 1) << to_string(e) << " " << low;
      ASSERT_EQ(from_double(middle, e), bits % 2 == 0 ? bits : bits + 1) << to_string(e) << " " << low;
      ASSERT_EQ(from_double(std::nextafter(high, low), e, Rounding::kTowardZero), bits)
          << to_string(e) << " " << low;
    }
  }
}

// The vectorised loops agree with the formats' definition on every pattern, and on floats of every exponent.
TEST(FloatFormats, LoopsAgreeWithTheDefinition) {
  std::mt19937 random(7);
  std::vector<float> floats = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
  for (int k = 0; k < 200000; ++k) floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (const Elem e : kNarrow) {
    const auto bytes = static_cast<size_t>(elem_bytes(e));
    const auto n = static_cast<int64_t>(patterns(e));
    std::vector<uint8_t> all(static_cast<size_t>(n) * bytes), narrowed(floats.size() * bytes);
    for (uint32_t k = 0; k < patterns(e); ++k) std::memcpy(&all[k * bytes], &k, bytes);
    std::vector<float> wide(static_cast<size_t>(n));
    widen_kernel(e)(wide.data(), all.data(), n);
    for (uint32_t k = 0; k < patterns(e); ++k) {
      const float expected = to_float(k, e);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(wide[k]) : wide[k] == expected)
          << to_string(e) << " " << k;
    }
    narrow_kernel(e)(narrowed.data(), floats.data(), static_cast<int64_t>(floats.size()));
    for (size_t k = 0; k < floats.size(); ++k) {
      uint32_t got = 0;
      std::memcpy(&got, &narrowed[k * bytes], bytes);
      ASSERT_EQ(got, from_float(floats[k], e, Rounding::kNearestEven, is_float8(e)))
          << to_string(e) << " " << floats[k];
    }
  }
}

TEST(FloatFormats, TensorFloat32) {
  EXPECT_EQ(tf32_truncated(1.0f + 0x1p-11f), 1.0f);
  EXPECT_EQ(tf32_rounded(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(tf32_rounded(1.0f + 0x1p-12f), 1.0f);
  EXPECT_TRUE(std::isinf(tf32_rounded(INFINITY)));
}

TEST(Constant, BitsOfPrintedNumbers) {
  EXPECT_EQ(constant_bits("-1", Elem::kI32), 0xffffffffu);
  EXPECT_EQ(constant_bits("true", Elem::kI1), 1u);
  EXPECT_EQ(constant_bits("0x7F800000", Elem::kF32), 0x7f800000u);
  EXPECT_EQ(constant_bits("0x7E00", Elem::kF16), 0x7e00u);
  EXPECT_EQ(constant_bits("1.000000e+00", Elem::kBF16), 0x3f80u);
  EXPECT_EQ(constant_bits("4.6566126E-10", Elem::kF32), std::bit_cast<uint32_t>(4.6566126E-10f));
  EXPECT_FALSE(constant_bits("1.5", Elem::kI32));
  EXPECT_FALSE(constant_bits("true", Elem::kI32));
  EXPECT_FALSE(constant_bits("", Elem::kF32));
}

}  // namespace
}  // namespace nereid::ttir
