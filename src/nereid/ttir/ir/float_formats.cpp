#include "nereid/ttir/ir/float_formats.h"

#include <cmath>
#include <limits>

namespace nereid::ttir {
namespace {

// How a format below 64 bits is laid out. Formats ending in FNUZ have one NaN (the sign alone) and no
// infinity; f8E4M3FN's NaN is all ones.
struct Layout {
  int exponent_bits, mantissa_bits, bias;
  enum class Special { kIeee, kNanAllOnes, kNanNegativeZero } special;
};

constexpr Layout layout_of(Elem format) {
  using enum Layout::Special;
  switch (format) {
    case Elem::kF8E4M3FN:
      return {4, 3, 7, kNanAllOnes};
    case Elem::kF8E5M2:
      return {5, 2, 15, kIeee};
    case Elem::kF8E4M3FNUZ:
      return {4, 3, 8, kNanNegativeZero};
    case Elem::kF8E5M2FNUZ:
      return {5, 2, 16, kNanNegativeZero};
    case Elem::kF8E4M3B11FNUZ:
      return {4, 3, 11, kNanNegativeZero};
    case Elem::kBF16:
      return {8, 7, 127, kIeee};
    case Elem::kF16:
      return {5, 10, 15, kIeee};
    default:
      return {8, 23, 127, kIeee};
  }
}

}  // namespace

double to_double(uint64_t bits, Elem format) {
  if (format == Elem::kF64) return std::bit_cast<double>(bits);
  if (format == Elem::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const Layout l = layout_of(format);
  const int width = 1 + l.exponent_bits + l.mantissa_bits;
  const uint64_t mantissa = bits & ((uint64_t{1} << l.mantissa_bits) - 1);
  const int top = (1 << l.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> l.mantissa_bits) & top;
  const bool negative = (bits >> (width - 1)) & 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double value;
  if (l.special == Layout::Special::kIeee && exponent == top) {
    value = mantissa != 0 ? nan : std::numeric_limits<double>::infinity();
  } else if (l.special == Layout::Special::kNanAllOnes && exponent == top &&
             mantissa == (uint64_t{1} << l.mantissa_bits) - 1) {
    value = nan;
  } else if (l.special == Layout::Special::kNanNegativeZero && negative && exponent == 0 && mantissa == 0) {
    return nan;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - l.bias - l.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa + (uint64_t{1} << l.mantissa_bits)),
                       exponent - l.bias - l.mantissa_bits);
  }
  return negative ? -value : value;
}

uint64_t from_double(double value, Elem format, Rounding rounding, bool saturate) {
  if (format == Elem::kF64) return std::bit_cast<uint64_t>(value);
  if (format == Elem::kF32 && rounding == Rounding::kNearestEven)
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Layout l = layout_of(format);
  const int width = 1 + l.exponent_bits + l.mantissa_bits;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (width - 1) : 0;
  const uint64_t ones = (uint64_t{1} << (width - 1)) - 1;  // all of exponent and mantissa
  const uint64_t infinity = ((uint64_t{1} << l.exponent_bits) - 1) << l.mantissa_bits;
  if (std::isnan(value)) {
    if (l.special == Layout::Special::kNanNegativeZero) return uint64_t{1} << (width - 1);
    if (format == Elem::kF32) return 0x7fc00000u;
    return ones;  // cvt's canonical NaN: 0x7fff, and 0x7f for both fp8 formats
  }
  uint64_t largest = infinity - 1;
  if (l.special == Layout::Special::kNanAllOnes) largest = ones - 1;
  if (l.special == Layout::Special::kNanNegativeZero) largest = ones;
  uint64_t overflow = infinity;
  if (l.special == Layout::Special::kNanAllOnes) overflow = ones;
  if (saturate || rounding == Rounding::kTowardZero) overflow = largest;
  if (std::isinf(value)) {
    if (rounding == Rounding::kTowardZero && !saturate && l.special == Layout::Special::kIeee)
      return sign | infinity;
    if (l.special == Layout::Special::kNanNegativeZero && !saturate) return uint64_t{1} << (width - 1);
    return sign | overflow;
  }
  if (value == 0) return l.special == Layout::Special::kNanNegativeZero ? 0 : sign;

  int exponent;
  const double magnitude = std::abs(value);
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  const int least = 1 - l.bias;      // the exponent of the smallest normal number
  const int unit = std::max(exponent - 1, least) - l.mantissa_bits;
  const double scaled = std::ldexp(magnitude, -unit);  // exact; in units of the last place
  const double whole = rounding == Rounding::kTowardZero ? std::trunc(scaled) : std::nearbyint(scaled);
  // `whole` counts units of the last place; the bits are whole plus the exponent field's offset, so a carry
  // does the right thing.
  const int field = unit + l.mantissa_bits - least;  // 0 for the smallest normals and the subnormals
  const uint64_t bits = static_cast<uint64_t>(whole) + (static_cast<uint64_t>(field) << l.mantissa_bits);
  if (bits > largest) {
    if (l.special == Layout::Special::kNanNegativeZero && !saturate && rounding == Rounding::kNearestEven)
      return uint64_t{1} << (width - 1);
    return sign | overflow;
  }
  if (bits == 0 && l.special == Layout::Special::kNanNegativeZero) return 0;
  return sign | bits;
}

float to_float(uint32_t bits, Elem format) {
  if (format == Elem::kBF16) return bf16_to_float(static_cast<uint16_t>(bits));
  return static_cast<float>(to_double(bits, format));
}

uint32_t from_float(float value, Elem format, Rounding rounding, bool saturate) {
  if (format == Elem::kBF16 && rounding == Rounding::kNearestEven && !saturate) return float_to_bf16(value);
  return static_cast<uint32_t>(from_double(value, format, rounding, saturate));
}

}  // namespace nereid::ttir
