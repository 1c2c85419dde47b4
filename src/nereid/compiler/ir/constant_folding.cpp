#include "nereid/compiler/ir/constant_folding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace nereid::compiler {
namespace {

// Half to even, as a conversion to float16.
double rounded_to_half(double x) {
  constexpr int kMinExponent = -14, kMantissaBits = 10;
  constexpr double kOverflow = 65520;
  if (x == 0 || !std::isfinite(x)) return x;
  if (std::fabs(x) >= kOverflow) return std::copysign(std::numeric_limits<double>::infinity(), x);
  const double unit = std::ldexp(1, std::max(std::ilogb(x), kMinExponent) - kMantissaBits);
  return std::nearbyint(x / unit) * unit;
}

// As round_to_tf32 (codegen/helpers.cpp): half away from zero.
double rounded_to_tf32(double x) {
  constexpr uint32_t kHalf = 1U << 12, kKept = ~(2 * kHalf - 1);
  if (std::isnan(x)) return x;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + kHalf) & kKept);
}

// By Newton's method on erf.
double erf_inverse(double x) {
  if (!(std::fabs(x) < 1))
    return std::fabs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  constexpr int kSteps = 60;
  double y = 0;
  for (int step = 0; step < kSteps; ++step)
    y -= (std::erf(y) - x) / (2 / std::sqrt(std::numbers::pi) * std::exp(-y * y));
  return y;
}

double bessel_i(int order, double x) {
  constexpr double kOverflow = 713;
  const double size = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  return sign * (size > kOverflow ? std::numeric_limits<double>::infinity() : std::cyl_bessel_i(order, size));
}

std::optional<double> folded_of_one(Fn fn, double x) {
  switch (fn) {
    case Fn::kNeg:
      return -x;
    case Fn::kAbs:
      return std::fabs(x);
    case Fn::kExp:
      return std::exp(x);
    case Fn::kExp2:
      return std::exp2(x);
    case Fn::kExpm1:
      return std::expm1(x);
    case Fn::kLog:
      return std::log(x);
    case Fn::kLog2:
      return std::log2(x);
    case Fn::kLog1p:
      return std::log1p(x);
    case Fn::kSqrt:
      return std::sqrt(x);
    case Fn::kRsqrt:
      return 1 / std::sqrt(x);
    case Fn::kSin:
      return std::sin(x);
    case Fn::kCos:
      return std::cos(x);
    case Fn::kTan:
      return std::tan(x);
    case Fn::kAsin:
      return std::asin(x);
    case Fn::kAcos:
      return std::acos(x);
    case Fn::kAtan:
      return std::atan(x);
    case Fn::kSinh:
      return std::sinh(x);
    case Fn::kCosh:
      return std::cosh(x);
    case Fn::kTanh:
      return std::tanh(x);
    case Fn::kErf:
      return std::erf(x);
    case Fn::kErfc:
      return std::erfc(x);
    case Fn::kErfcx:
      return x < 25 ? std::optional(std::exp(x * x) * std::erfc(x)) : std::nullopt;
    case Fn::kLogb:
      return std::logb(x);
    case Fn::kErfinv:
      return erf_inverse(x);
    case Fn::kAcosh:
      return std::acosh(x);
    case Fn::kAtanh:
      return std::atanh(x);
    case Fn::kLgamma:
      return std::lgamma(x);
    case Fn::kBesselI0:
      return bessel_i(0, x);
    case Fn::kBesselI1:
      return bessel_i(1, x);
    case Fn::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Fn::kFloor:
      return std::floor(x);
    case Fn::kCeil:
      return std::ceil(x);
    case Fn::kTrunc:
      return std::trunc(x);
    case Fn::kRound:
      return std::nearbyint(x);
    case Fn::kHalf:
      return rounded_to_half(x);
    case Fn::kTf32:
      return rounded_to_tf32(x);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<bool> compared(Fn fn, double a, double b) {
  constexpr double kExact = int64_t{1} << 53;
  if (std::abs(a) >= kExact || std::abs(b) >= kExact) return std::nullopt;
  if (fn == Fn::kLess) return a < b;
  if (fn == Fn::kLessEqual) return a <= b;
  if (fn == Fn::kEqual) return a == b;
  if (fn == Fn::kNotEqual) return a != b;
  return std::nullopt;
}

std::optional<double> folded(Fn fn, const std::vector<double>& x) {
  switch (fn) {
    case Fn::kAdd:
      return x[0] + x[1];
    case Fn::kSub:
      return x[0] - x[1];
    case Fn::kMul:
      return x[0] * x[1];
    case Fn::kDiv:
      return x[0] / x[1];
    case Fn::kMax:
      return std::isnan(x[0]) || std::isnan(x[1]) ? std::nan("") : std::max(x[0], x[1]);
    case Fn::kMin:
      return std::isnan(x[0]) || std::isnan(x[1]) ? std::nan("") : std::min(x[0], x[1]);
    case Fn::kPow:
      return std::pow(x[0], x[1]);
    case Fn::kAtan2:
      return std::atan2(x[0], x[1]);
    default:
      return x.size() == 1 ? folded_of_one(fn, x[0]) : std::nullopt;
  }
}

}  // namespace nereid::compiler
