#include "nereid/ttir/ptx/approximate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir {
namespace {

constexpr double kHalfUlp = 0x1p-24;  // rounding to f32, relative
constexpr double kTwoPi = 6.283185307179586;

uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185u;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}

// In [-1, -0.75] or [0.75, 1]: the sign by the operand's upper bits, the size by all of them.
double wobble(Approximate op, uint32_t bits, int low_bits = 16) {
  const auto salt = static_cast<uint64_t>(op) + 1;
  const bool negative = mixed((bits >> low_bits) * 0x9e3779b97f4a7c15u + salt) & 1;
  const double size = 0.75 + 0.25 * static_cast<double>(mixed(bits ^ salt << 40) >> 11) * 0x1p-53;
  return negative ? -size : size;
}

float flushed_float(float v, bool flush) {
  return flush && std::abs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v;
}

// A relative bound after rounding to f32.
// What overflows does.
double relative(double exact, double bound, double wobble) {
  if (std::isinf(static_cast<float>(exact))) return exact;
  return exact * (1 + wobble * (bound - kHalfUlp));
}

double divided(Approximate op, float a, float b, double w) {
  const float size = std::abs(b);
  if (op == Approximate::kDiv && size > 0x1p126f && !std::isinf(b))
    return std::isinf(a) ? std::numeric_limits<double>::quiet_NaN()
                         : std::copysign(0.0, std::signbit(a) != std::signbit(b) ? -1.0 : 1.0);
  const double exact =
      op == Approximate::kDiv && size < std::numeric_limits<float>::min()
          ? static_cast<double>(a) * static_cast<double>(static_cast<float>(1 / static_cast<double>(b)))
          : static_cast<double>(a) / static_cast<double>(b);
  return exact * (1 + w * 1.5 * kHalfUlp);
}

double circular(Approximate op, float a, double w) {
  const double x = static_cast<double>(a), size = std::abs(x);
  const double exact = op == Approximate::kSin ? std::sin(x) : std::cos(x);
  if (!std::isfinite(x) || x == 0) return exact;
  double bound = size <= kTwoPi ? 0x1.6a09e6p-21 : size * 0x1p-23;  // 2^-20.5
  if (op == Approximate::kSin && size <= kTwoPi) bound = std::min(bound, std::abs(exact) / 2);
  return std::clamp(exact + w * std::min(bound - kHalfUlp * std::abs(exact), 2.0), -1.0, 1.0);
}

double logarithm(float a, double w) {
  const double exact = std::log2(static_cast<double>(a));
  if (!std::isfinite(exact)) return exact;
  if (a > 0.5f && a < 2) return exact + w * (0x1.51cb46p-23 - kHalfUlp * std::abs(exact));  // 2^-22.6
  return relative(exact, 0x1p-22, w);
}

// Where tanh is one to float32's last bit.
bool saturated(double x) { return std::abs(static_cast<float>(std::tanh(x))) == 1; }

}  // namespace

float approximate(Approximate op, float a, bool flush, float b) {
  a = flushed_float(a, flush), b = flushed_float(b, flush);
  const double w = wobble(op, std::bit_cast<uint32_t>(a) ^ (std::bit_cast<uint32_t>(b) * 0x9e37u));
  const double x = static_cast<double>(a);
  double r = 0;
  switch (op) {
    case Approximate::kRcp:
      r = 1 / x * (1 + w * 0.5 * kHalfUlp);
      break;
    case Approximate::kDiv:
    case Approximate::kDivFull:
      r = divided(op, a, b, w);
      break;
    case Approximate::kSqrt:
      r = relative(std::sqrt(x), 0x1p-23, w);
      break;
    case Approximate::kRsqrt:
      r = relative(1 / std::sqrt(x), 0x1.125fbfp-23, w);  // 2^-22.9
      break;
    case Approximate::kSin:
    case Approximate::kCos:
      r = circular(op, a, w);
      break;
    case Approximate::kLg2:
      r = logarithm(a, w);
      break;
    case Approximate::kEx2:  // a subnormal operand gives exactly 1, as zeros do
      r = std::abs(a) < std::numeric_limits<float>::min() ? 1 : relative(std::exp2(x), 0x1.6a09e6p-23, w);
      break;
    case Approximate::kTanh:
      r = std::clamp(relative(std::tanh(x), 0x1p-11, saturated(x) ? 0 : w), -1.0, 1.0);
      break;
  }
  return flushed_float(static_cast<float>(r), flush);
}

namespace {

// The bound of a narrow type less what rounding takes of it, relative; zero where there is no such
// instruction.
double narrow_error(Approximate op, Elem elem) {
  if (op == Approximate::kEx2) return elem == Elem::kF16 ? 0x1.125fbfp-10 - 0x1p-11 : 0x1p-7 - 0x1p-8;
  if (op == Approximate::kTanh) return elem == Elem::kF16 ? 0x1.0252p-11 - 0x1p-12 : 0x1p-8 - 0x1p-9;
  return 0;
}

uint64_t narrow_bits(Approximate op, Elem elem, uint64_t a, bool flush) {
  const double smallest = elem == Elem::kF16 ? 0x1p-14 : 0x1p-126;
  const auto flushed = [&](double v) { return flush && std::abs(v) < smallest ? std::copysign(0.0, v) : v; };
  const double x = flushed(to_double(a, elem));
  double r = op == Approximate::kEx2 ? std::exp2(x) : std::tanh(x);
  const bool exact =
      op == Approximate::kTanh && (saturated(x) || std::abs(to_double(from_double(r, elem), elem)) == 1);
  if (x != 0 && std::isfinite(x) && !exact)
    r *= 1 + narrow_error(op, elem) * wobble(op, static_cast<uint32_t>(a), 5);
  if (op == Approximate::kTanh) r = std::clamp(r, -1.0, 1.0);
  return from_double(flushed(r), elem);
}

}  // namespace

uint64_t approximate_bits(Approximate op, Elem elem, uint64_t a, bool flush, uint64_t b) {
  if (elem == Elem::kF64) {  // of f64 there are rcp and rsqrt alone
    const double x = flush && std::abs(std::bit_cast<double>(a)) < std::numeric_limits<double>::min()
                         ? std::copysign(0.0, std::bit_cast<double>(a))
                         : std::bit_cast<double>(a);
    const double r = op == Approximate::kRcp ? 1 / x : 1 / std::sqrt(x);
    return std::bit_cast<uint64_t>(r) & ~uint64_t{0xffffffff};
  }
  if (elem != Elem::kF32) return narrow_bits(op, elem, a, flush);
  return std::bit_cast<uint32_t>(approximate(op, std::bit_cast<float>(static_cast<uint32_t>(a)), flush,
                                             std::bit_cast<float>(static_cast<uint32_t>(b))));
}

namespace {

template <Approximate op, bool flush>
void approximate_all(void* out, const void* a, int64_t n) {
  for (int64_t k = 0; k < n; ++k)
    static_cast<float*>(out)[k] = approximate(op, static_cast<const float*>(a)[k], flush);
}
template <Approximate op>
UnaryKernel picked(bool flush) {
  return flush ? approximate_all<op, true> : approximate_all<op, false>;
}

}  // namespace

UnaryKernel approximate_kernel(Approximate op, bool flush) {
  switch (op) {
    case Approximate::kRcp:
      return picked<Approximate::kRcp>(flush);
    case Approximate::kSqrt:
      return picked<Approximate::kSqrt>(flush);
    case Approximate::kRsqrt:
      return picked<Approximate::kRsqrt>(flush);
    case Approximate::kSin:
      return picked<Approximate::kSin>(flush);
    case Approximate::kCos:
      return picked<Approximate::kCos>(flush);
    case Approximate::kLg2:
      return picked<Approximate::kLg2>(flush);
    case Approximate::kEx2:
      return picked<Approximate::kEx2>(flush);
    case Approximate::kTanh:
      return picked<Approximate::kTanh>(flush);
    case Approximate::kDiv:
    case Approximate::kDivFull:
      break;
  }
  return nullptr;
}

namespace fast {

namespace {
float product(float a, float b) { return flushed_float(flushed_float(a, true) * b, true); }
}  // namespace

float sin(float a) { return approximate(Approximate::kSin, a, true); }
float cos(float a) { return approximate(Approximate::kCos, a, true); }
float tan(float a) { return divide(sin(a), cos(a)); }
float exp(float a) { return approximate(Approximate::kEx2, product(a, 1.4426950408889634f), true); }
float exp10(float a) { return approximate(Approximate::kEx2, product(a, 3.321928094887362f), true); }
float log2(float a) { return approximate(Approximate::kLg2, a, true); }
float log(float a) { return product(log2(a), 0.6931471805599453f); }
float log10(float a) { return product(log2(a), 0.3010299956639812f); }
float pow(float a, float b) { return approximate(Approximate::kEx2, product(b, log2(a)), true); }
float divide(float a, float b) { return approximate(Approximate::kDiv, a, true, b); }

}  // namespace fast
}  // namespace nereid::ttir
