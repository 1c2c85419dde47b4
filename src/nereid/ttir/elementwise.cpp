#include "nereid/ttir/elementwise.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "nereid/ttir/float_formats.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)  // the baseline, AVX2 and AVX-512 are enough
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nereid/ttir/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// SLEEF declares its vector functions only for the instruction set of the whole file, so those used are
// declared here.
#ifndef NEREID_TTIR_SLEEF
#define NEREID_TTIR_SLEEF
#define NEREID_SLEEF_UNARY(F)                                                                              \
  F(exp, u10)                                                                                              \
  F(exp2, u10)                                                                                             \
  F(exp10, u10) F(expm1, u10) F(log, u10) F(log2, u10) F(log10, u10) F(log1p, u10) F(sin, u10) F(cos, u10) \
      F(tan, u10) F(asin, u10) F(acos, u10) F(atan, u10) F(sinh, u10) F(cosh, u10) F(tanh, u10)            \
          F(asinh, u10) F(acosh, u10) F(atanh, u10) F(erf, u10) F(erfc, u15) F(cbrt, u10)
#endif

HWY_BEFORE_NAMESPACE();
namespace nereid::ttir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef NEREID_LANES
#undef NEREID_VECTOR
#undef NEREID_MATH
#undef NEREID_CAT3
#undef NEREID_CAT3_
#undef NEREID_F16C
#if HWY_TARGET == HWY_AVX3
#define NEREID_LANES f16
#define NEREID_VECTOR __m512
#elif HWY_TARGET == HWY_AVX2
#define NEREID_LANES f8
#define NEREID_VECTOR __m256
#endif

#ifdef NEREID_VECTOR
#define NEREID_CAT3_(a, b, c) a##b##_##c
#define NEREID_CAT3(a, b, c) NEREID_CAT3_(a, b, c)
#define NEREID_DECLARE(name, ulp) \
  extern "C" NEREID_VECTOR NEREID_CAT3(Sleef_##name, NEREID_LANES, ulp)(NEREID_VECTOR);
NEREID_SLEEF_UNARY(NEREID_DECLARE)
extern "C" NEREID_VECTOR NEREID_CAT3(Sleef_pow, NEREID_LANES, u10)(NEREID_VECTOR, NEREID_VECTOR);
extern "C" NEREID_VECTOR NEREID_CAT3(Sleef_atan2, NEREID_LANES, u10)(NEREID_VECTOR, NEREID_VECTOR);
#undef NEREID_DECLARE
#endif

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// ---- binary arithmetic
// ----------------------------------------------------------------------------------------
struct AddOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct SubOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct MulOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
// Integer division never traps: by zero it gives what the GPU does (all ones), and the handler reports it.
template <class T>
T divide_signed(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (b == -1) return static_cast<T>(-static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
T divide_unsigned(T a, T b) {
  return b == 0 ? static_cast<T>(-1)
                : static_cast<T>(static_cast<Unsigned<T>>(a) / static_cast<Unsigned<T>>(b));
}
// Through double where that is exact: it vectorises.
template <class T>
inline constexpr bool kDivideByDouble = sizeof(T) <= 4;
struct DivsiOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kDivideByDouble<T>) {
      const double q = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
      return b == 0 ? static_cast<T>(-1) : static_cast<T>(static_cast<int64_t>(q));
    } else {
      return divide_signed(a, b);
    }
  }
};
struct DivuiOp {
  template <class T>
  static T apply(T a, T b) {
    return divide_unsigned(a, b);
  }
};
struct RemsiOp {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    return static_cast<T>(static_cast<uint64_t>(a) -
                          static_cast<uint64_t>(DivsiOp::apply(a, b)) * static_cast<uint64_t>(b));
  }
};
struct RemuiOp {
  template <class T>
  static T apply(T a, T b) {
    return b == 0 ? a : static_cast<T>(static_cast<Unsigned<T>>(a) % static_cast<Unsigned<T>>(b));
  }
};
struct FloordivsiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_signed(a, b);
    return b != 0 && (RemsiOp::apply(a, b) != 0) && ((a < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  }
};
struct CeildivsiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_signed(a, b);
    return b != 0 && (RemsiOp::apply(a, b) != 0) && ((a < 0) == (b < 0)) ? static_cast<T>(q + 1) : q;
  }
};
struct CeildivuiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_unsigned(a, b);
    return b != 0 && RemuiOp::apply(a, b) != 0 ? static_cast<T>(q + 1) : q;
  }
};
struct AndOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct XorOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// Shifts by the width or more clamp, as PTX's do.
struct ShlOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return by >= width ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a) << (by & (width - 1)));
  }
};
struct ShruiOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return by >= width ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a) >> (by & (width - 1)));
  }
};
struct ShrsiOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return static_cast<T>(a >> (by >= width ? width - 1 : by));
  }
};
struct MinsiOp {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaxsiOp {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinuiOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(a) < static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct MaxuiOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(a) > static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct MulhiuiOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(
          (static_cast<unsigned __int128>(static_cast<uint64_t>(a)) * static_cast<uint64_t>(b)) >> 64);
    } else {
      return static_cast<T>(
          (static_cast<uint64_t>(static_cast<Unsigned<T>>(a)) * static_cast<Unsigned<T>>(b)) >>
          (8 * sizeof(T)));
    }
  }
};
struct MulhisiOp {  // the upper half of a signed product
  template <class T>
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8)
      return static_cast<T>((static_cast<__int128>(a) * b) >> 64);
    else
      return static_cast<T>((static_cast<int64_t>(a) * static_cast<int64_t>(b)) >> (8 * sizeof(T)));
  }
};
struct AddCarryOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(AddOp::apply(a, b)) < static_cast<Unsigned<T>>(a) ? T{1} : T{0};
  }
};
struct DivOp {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct RemOp {
  template <class T>
  static T apply(T a, T b) {
    return std::fmod(a, b);
  }
};
struct MaxnumOp {
  template <class T>
  static T apply(T a, T b) {
    const T larger = a > b ? a : b;  // b where either is NaN
    return b != b ? a : larger;
  }
};
struct MinnumOp {
  template <class T>
  static T apply(T a, T b) {
    const T smaller = a < b ? a : b;
    return b != b ? a : smaller;
  }
};
struct MaximumOp {
  template <class T>
  static T apply(T a, T b) {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;  // where b is NaN, larger is b
  }
};
struct MinimumOp {
  template <class T>
  static T apply(T a, T b) {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};
struct CopysignOp {
  template <class T>
  static T apply(T a, T b) {
    return std::copysign(a, b);
  }
};
struct Atan2Op {
  template <class T>
  static T apply(T a, T b) {
    return std::atan2(a, b);
  }
};
struct PowOp {
  template <class T>
  static T apply(T a, T b) {
    return std::pow(a, b);
  }
};

template <class Op, class T>
void binary(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if (uniform == Uniform::kNeither) {
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i], y[i]);
  } else if (uniform == Uniform::kFirst) {
    const T first = *x;
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(first, y[i]);
  } else {
    const T second = *y;
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i], second);
  }
}
// An i1 is an integer of one bit: true is -1 to signed operations.
template <class Op>
struct BitOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Op::template apply<int8_t>(static_cast<int8_t>(-static_cast<int8_t>(a)),
                                                     static_cast<int8_t>(-static_cast<int8_t>(b))) &
                          1);
  }
};
template <class Op>
BinaryKernel integer_binary(Elem elem) {
  switch (elem) {
    case Elem::kI1:
      return binary<BitOp<Op>, uint8_t>;
    case Elem::kI8:
      return binary<Op, int8_t>;
    case Elem::kI16:
      return binary<Op, int16_t>;
    case Elem::kI32:
      return binary<Op, int32_t>;
    case Elem::kI64:
    case Elem::kPointer:
      return binary<Op, int64_t>;
    default:
      return nullptr;
  }
}
template <class Op>
BinaryKernel float_binary(Elem elem) {
  return elem == Elem::kF32 ? binary<Op, float> : elem == Elem::kF64 ? binary<Op, double> : nullptr;
}

#ifdef NEREID_VECTOR
using FloatVector = NEREID_VECTOR;
template <FloatVector (*F)(FloatVector, FloatVector)>
void sleef_binary(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  const float* y = static_cast<const float*>(b);
  HWY_ALIGN float tail[3][64];
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(n - i < lanes ? n - i : lanes);
    const float* px = uniform == Uniform::kFirst ? x : x + i;
    const float* py = uniform == Uniform::kSecond ? y : y + i;
    for (size_t j = 0; j < static_cast<size_t>(lanes); ++j) {
      tail[0][j] = uniform == Uniform::kFirst ? *px : j < count ? px[j] : 1.0f;
      tail[1][j] = uniform == Uniform::kSecond ? *py : j < count ? py[j] : 1.0f;
    }
    using V = hn::Vec<decltype(d)>;
    V r;
    r.raw = F(hn::Load(d, tail[0]).raw, hn::Load(d, tail[1]).raw);
    hn::Store(r, d, tail[2]);
    std::memcpy(o + i, tail[2], count * sizeof(float));
  }
}
#endif

BinaryKernel FindBinary(OpKind kind, Elem elem) {
  switch (kind) {
    case OpKind::kAddi:
      return integer_binary<AddOp>(elem);
    case OpKind::kSubi:
      return integer_binary<SubOp>(elem);
    case OpKind::kMuli:
      return integer_binary<MulOp>(elem);
    case OpKind::kDivsi:
      return integer_binary<DivsiOp>(elem);
    case OpKind::kDivui:
      return integer_binary<DivuiOp>(elem);
    case OpKind::kRemsi:
      return integer_binary<RemsiOp>(elem);
    case OpKind::kRemui:
      return integer_binary<RemuiOp>(elem);
    case OpKind::kCeildivsi:
      return integer_binary<CeildivsiOp>(elem);
    case OpKind::kCeildivui:
      return integer_binary<CeildivuiOp>(elem);
    case OpKind::kFloordivsi:
      return integer_binary<FloordivsiOp>(elem);
    case OpKind::kAndi:
      return integer_binary<AndOp>(elem);
    case OpKind::kOri:
      return integer_binary<OrOp>(elem);
    case OpKind::kXori:
      return integer_binary<XorOp>(elem);
    case OpKind::kShli:
      return integer_binary<ShlOp>(elem);
    case OpKind::kShrsi:
      return integer_binary<ShrsiOp>(elem);
    case OpKind::kShrui:
      return integer_binary<ShruiOp>(elem);
    case OpKind::kMinsi:
      return integer_binary<MinsiOp>(elem);
    case OpKind::kMaxsi:
      return integer_binary<MaxsiOp>(elem);
    case OpKind::kMinui:
      return integer_binary<MinuiOp>(elem);
    case OpKind::kMaxui:
      return integer_binary<MaxuiOp>(elem);
    case OpKind::kMulhiui:
    case OpKind::kMuluiExtended:
      return integer_binary<MulhiuiOp>(elem);
    case OpKind::kMulsiExtended:
      return integer_binary<MulhisiOp>(elem);
    case OpKind::kAdduiExtended:
      return integer_binary<AddCarryOp>(elem);
    case OpKind::kAddf:
      return float_binary<AddOp>(elem);
    case OpKind::kSubf:
      return float_binary<SubOp>(elem);
    case OpKind::kMulf:
      return float_binary<MulOp>(elem);
    case OpKind::kDivf:
    case OpKind::kPreciseDivf:
      return float_binary<DivOp>(elem);
    case OpKind::kRemf:
      return float_binary<RemOp>(elem);
    case OpKind::kMaxnumf:
      return float_binary<MaxnumOp>(elem);
    case OpKind::kMinnumf:
      return float_binary<MinnumOp>(elem);
    case OpKind::kMaximumf:
      return float_binary<MaximumOp>(elem);
    case OpKind::kMinimumf:
      return float_binary<MinimumOp>(elem);
    case OpKind::kCopysign:
      return float_binary<CopysignOp>(elem);
#ifdef NEREID_VECTOR
    case OpKind::kAtan2:
      return elem == Elem::kF32 ? sleef_binary<NEREID_CAT3(Sleef_atan2, NEREID_LANES, u10)>
                                : float_binary<Atan2Op>(elem);
    case OpKind::kPowf:
      return elem == Elem::kF32 ? sleef_binary<NEREID_CAT3(Sleef_pow, NEREID_LANES, u10)>
                                : float_binary<PowOp>(elem);
#else
    case OpKind::kAtan2:
      return float_binary<Atan2Op>(elem);
    case OpKind::kPowf:
      return float_binary<PowOp>(elem);
#endif
    default:
      return nullptr;
  }
}

// ---- unary
// ----------------------------------------------------------------------------------------------------
#define NEREID_UNARY(name, expression) \
  struct name {                        \
    template <class T>                 \
    static T apply(T a) {              \
      return expression;               \
    }                                  \
  };
NEREID_UNARY(AbsfOp, std::abs(a))
NEREID_UNARY(NegOp, -a)
NEREID_UNARY(CeilOp, std::ceil(a))
NEREID_UNARY(FloorOp, std::floor(a))
NEREID_UNARY(RoundOp, std::round(a))
NEREID_UNARY(RoundevenOp, std::nearbyint(a))
NEREID_UNARY(TruncOp, std::trunc(a))
NEREID_UNARY(SqrtOp, std::sqrt(a))
NEREID_UNARY(RsqrtOp, T(1) / std::sqrt(a))
NEREID_UNARY(exp_Op, std::exp(a))
NEREID_UNARY(exp2_Op, std::exp2(a))
NEREID_UNARY(exp10_Op, std::pow(T(10), a))
NEREID_UNARY(expm1_Op, std::expm1(a))
NEREID_UNARY(log_Op, std::log(a))
NEREID_UNARY(log2_Op, std::log2(a))
NEREID_UNARY(log10_Op, std::log10(a))
NEREID_UNARY(log1p_Op, std::log1p(a))
NEREID_UNARY(sin_Op, std::sin(a))
NEREID_UNARY(cos_Op, std::cos(a))
NEREID_UNARY(tan_Op, std::tan(a))
NEREID_UNARY(asin_Op, std::asin(a))
NEREID_UNARY(acos_Op, std::acos(a))
NEREID_UNARY(atan_Op, std::atan(a))
NEREID_UNARY(sinh_Op, std::sinh(a))
NEREID_UNARY(cosh_Op, std::cosh(a))
NEREID_UNARY(tanh_Op, std::tanh(a))
NEREID_UNARY(asinh_Op, std::asinh(a))
NEREID_UNARY(acosh_Op, std::acosh(a))
NEREID_UNARY(atanh_Op, std::atanh(a))
NEREID_UNARY(erf_Op, std::erf(a))
NEREID_UNARY(erfc_Op, std::erfc(a))
NEREID_UNARY(cbrt_Op, std::cbrt(a))
NEREID_UNARY(AbsiOp, static_cast<T>(a < 0 ? -static_cast<Unsigned<T>>(a) : static_cast<Unsigned<T>>(a)))
NEREID_UNARY(CtlzOp, static_cast<T>(std::countl_zero(static_cast<Unsigned<T>>(a))))
NEREID_UNARY(CttzOp, static_cast<T>(std::countr_zero(static_cast<Unsigned<T>>(a))))
NEREID_UNARY(CtpopOp, static_cast<T>(std::popcount(static_cast<Unsigned<T>>(a))))
#undef NEREID_UNARY

template <class Op, class T>
void unary(void* out, const void* a, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i]);
}
template <class Op>
UnaryKernel float_unary(Elem elem) {
  return elem == Elem::kF32 ? unary<Op, float> : elem == Elem::kF64 ? unary<Op, double> : nullptr;
}
template <class Op>
UnaryKernel integer_unary(Elem elem) {
  switch (elem) {
    case Elem::kI8:
      return unary<Op, int8_t>;
    case Elem::kI16:
      return unary<Op, int16_t>;
    case Elem::kI32:
      return unary<Op, int32_t>;
    case Elem::kI64:
      return unary<Op, int64_t>;
    default:
      return nullptr;
  }
}

#ifdef NEREID_VECTOR
template <FloatVector (*F)(FloatVector)>
void sleef_unary(void* out, const void* a, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  hn::Vec<decltype(d)> r;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    r.raw = F(hn::LoadU(d, x + i).raw);
    hn::StoreU(r, d, o + i);
  }
  if (i < n) {
    HWY_ALIGN float tail[64] = {};
    std::memcpy(tail, x + i, static_cast<size_t>(n - i) * sizeof(float));
    r.raw = F(hn::Load(d, tail).raw);
    hn::Store(r, d, tail);
    std::memcpy(o + i, tail, static_cast<size_t>(n - i) * sizeof(float));
  }
}
#define NEREID_MATH(name, ulp)                                                    \
  (elem == Elem::kF32 ? sleef_unary<NEREID_CAT3(Sleef_##name, NEREID_LANES, ulp)> \
                      : float_unary<name##_Op>(elem))
#else
#define NEREID_MATH(name, ulp) float_unary<name##_Op>(elem)
#endif

// exp over a whole tile, inlined: x = q ln2 + r, a polynomial for exp(r), 2^q by exponent bits. Within 1 ulp.
void exp_f32(void* out, const void* a, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  const auto body = [&](auto v) HWY_ATTR {
    // Beyond these the result is 0 or infinity whatever the rest of the argument; NaN passes through Min and
    // Max's order.
    const auto low = hn::Set(d, -104.0f), high = hn::Set(d, 89.0f);
    const auto clamped = hn::IfThenElse(hn::Gt(v, high), high, hn::IfThenElse(hn::Lt(v, low), low, v));
    const auto q = hn::Round(hn::Mul(clamped, hn::Set(d, 1.4426950408889634f)));
    auto r = hn::NegMulAdd(q, hn::Set(d, 0.693145751953125f), clamped);
    r = hn::NegMulAdd(q, hn::Set(d, 1.42860682030941723212e-6f), r);
    auto p = hn::Set(d, 0.000198527617612853646278381f);
    p = hn::MulAdd(p, r, hn::Set(d, 0.00139304355252534151077271f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.00833336077630519866943359f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.0416664853692054748535156f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.166666671633720397949219f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
    p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
    // 2^q in two factors, so that subnormal results and 2^128 come out right.
    const auto qi = hn::ConvertTo(di, q);
    const auto half = hn::ShiftRight<1>(qi);
    const auto bias = hn::Set(di, 127);
    const auto f1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto f2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(qi, half), bias)));
    auto result = hn::Mul(hn::Mul(p, f1), f2);
    return hn::IfThenElse(hn::Ne(v, v), v, result);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(body(hn::LoadU(d, x + i)), d, o + i);
  if (i < n) {
    HWY_ALIGN float tail[64] = {};
    std::memcpy(tail, x + i, static_cast<size_t>(n - i) * sizeof(float));
    hn::Store(body(hn::Load(d, tail)), d, tail);
    std::memcpy(o + i, tail, static_cast<size_t>(n - i) * sizeof(float));
  }
}

UnaryKernel FindUnary(OpKind kind, Elem elem) {
  switch (kind) {
    case OpKind::kAbsf:
      return float_unary<AbsfOp>(elem);
    case OpKind::kNegf:
      return float_unary<NegOp>(elem);
    case OpKind::kCeil:
      return float_unary<CeilOp>(elem);
    case OpKind::kFloor:
      return float_unary<FloorOp>(elem);
    case OpKind::kRound:
      return float_unary<RoundOp>(elem);
    case OpKind::kRoundeven:
      return float_unary<RoundevenOp>(elem);
    case OpKind::kTrunc:
      return float_unary<TruncOp>(elem);
    case OpKind::kSqrt:
    case OpKind::kPreciseSqrt:
      return float_unary<SqrtOp>(elem);
    case OpKind::kRsqrt:
      return float_unary<RsqrtOp>(elem);
    case OpKind::kExp:
      return elem == Elem::kF32 ? exp_f32 : float_unary<exp_Op>(elem);
    case OpKind::kExp2:
      return NEREID_MATH(exp2, u10);
    case OpKind::kExpm1:
      return NEREID_MATH(expm1, u10);
    case OpKind::kLog:
      return NEREID_MATH(log, u10);
    case OpKind::kLog2:
      return NEREID_MATH(log2, u10);
    case OpKind::kLog10:
      return NEREID_MATH(log10, u10);
    case OpKind::kLog1p:
      return NEREID_MATH(log1p, u10);
    case OpKind::kSin:
      return NEREID_MATH(sin, u10);
    case OpKind::kCos:
      return NEREID_MATH(cos, u10);
    case OpKind::kTan:
      return NEREID_MATH(tan, u10);
    case OpKind::kAsin:
      return NEREID_MATH(asin, u10);
    case OpKind::kAcos:
      return NEREID_MATH(acos, u10);
    case OpKind::kAtan:
      return NEREID_MATH(atan, u10);
    case OpKind::kSinh:
      return NEREID_MATH(sinh, u10);
    case OpKind::kCosh:
      return NEREID_MATH(cosh, u10);
    case OpKind::kTanh:
      return NEREID_MATH(tanh, u10);
    case OpKind::kAsinh:
      return NEREID_MATH(asinh, u10);
    case OpKind::kAcosh:
      return NEREID_MATH(acosh, u10);
    case OpKind::kAtanh:
      return NEREID_MATH(atanh, u10);
    case OpKind::kErf:
      return NEREID_MATH(erf, u10);
    case OpKind::kErfc:
      return NEREID_MATH(erfc, u15);
    case OpKind::kCbrt:
      return NEREID_MATH(cbrt, u10);
    case OpKind::kAbsi:
      return integer_unary<AbsiOp>(elem);
    case OpKind::kCtlz:
      return integer_unary<CtlzOp>(elem);
    case OpKind::kCttz:
      return integer_unary<CttzOp>(elem);
    case OpKind::kCtpop:
      return integer_unary<CtpopOp>(elem);
    default:
      return nullptr;
  }
}

// ---- ternary
// --------------------------------------------------------------------------------------------------
template <class T>
void fma(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int64_t i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
}
template <class T, bool propagate>
void clamp(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int64_t i = 0; i < n; ++i) {
    const T clamped = MinnumOp::apply(MaxnumOp::apply(x[i], y[i]), z[i]);
    o[i] = propagate && x[i] != x[i] ? x[i] : clamped;
  }
}
TernaryKernel FindTernary(OpKind kind, Elem elem, bool propagate_nan) {
  if (elem != Elem::kF32 && elem != Elem::kF64) return nullptr;
  const bool single = elem == Elem::kF32;
  if (kind == OpKind::kFma) return single ? fma<float> : fma<double>;
  if (kind != OpKind::kClampf) return nullptr;
  if (propagate_nan) return single ? clamp<float, true> : clamp<double, true>;
  return single ? clamp<float, false> : clamp<double, false>;
}

// ---- comparison and selection
// -----------------------------------------------------------------------------------
template <class T, Predicate p>
struct Compare {
  HWY_INLINE static uint8_t one(T a, T b) {
    if constexpr (p == Predicate::kEq || p == Predicate::kOeq) return a == b;
    if constexpr (p == Predicate::kNe || p == Predicate::kUne) return a != b;
    if constexpr (p == Predicate::kSlt || p == Predicate::kOlt || p == Predicate::kUlt) return a < b;
    if constexpr (p == Predicate::kSle || p == Predicate::kOle || p == Predicate::kUle) return a <= b;
    if constexpr (p == Predicate::kSgt || p == Predicate::kOgt || p == Predicate::kUgt) return a > b;
    if constexpr (p == Predicate::kSge || p == Predicate::kOge || p == Predicate::kUge) return a >= b;
    if constexpr (p == Predicate::kOne) return (a < b) | (a > b);
    if constexpr (p == Predicate::kOrd) return (a == a) & (b == b);
    if constexpr (p == Predicate::kUno) return (a != a) | (b != b);
    if constexpr (p == Predicate::kUeq) return !((a < b) | (a > b));
    if constexpr (p == Predicate::kFUgt) return !(a <= b);
    if constexpr (p == Predicate::kFUge) return !(a < b);
    if constexpr (p == Predicate::kFUlt) return !(a >= b);
    if constexpr (p == Predicate::kFUle) return !(a > b);
    return p == Predicate::kTrue;
  }
  static void run(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
    uint8_t* o = static_cast<uint8_t*>(out);
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    if (uniform == Uniform::kNeither) {
      for (int64_t i = 0; i < n; ++i) o[i] = one(x[i], y[i]);
    } else if (uniform == Uniform::kFirst) {
      const T first = *x;
      for (int64_t i = 0; i < n; ++i) o[i] = one(first, y[i]);
    } else {
      const T second = *y;
      for (int64_t i = 0; i < n; ++i) o[i] = one(x[i], second);
    }
  }
};
template <Predicate p>
BinaryKernel integer_compare(Elem elem) {
  constexpr bool is_unsigned = p >= Predicate::kUlt && p <= Predicate::kUge;
  if constexpr (is_unsigned) {
    switch (elem) {
      case Elem::kI1:
      case Elem::kI8:
        return Compare<uint8_t, p>::run;
      case Elem::kI16:
        return Compare<uint16_t, p>::run;
      case Elem::kI32:
        return Compare<uint32_t, p>::run;
      case Elem::kI64:
      case Elem::kPointer:
        return Compare<uint64_t, p>::run;
      default:
        return nullptr;
    }
  } else {
    switch (elem) {
      case Elem::kI8:
        return Compare<int8_t, p>::run;
      case Elem::kI16:
        return Compare<int16_t, p>::run;
      case Elem::kI32:
        return Compare<int32_t, p>::run;
      case Elem::kI64:
      case Elem::kPointer:
        return Compare<int64_t, p>::run;
      default:
        return nullptr;
    }
  }
}
template <Predicate p>
BinaryKernel float_compare(Elem elem) {
  return elem == Elem::kF32 ? Compare<float, p>::run : elem == Elem::kF64 ? Compare<double, p>::run : nullptr;
}
BinaryKernel FindCompare(Predicate p, Elem elem) {
  if (elem == Elem::kI1) {  // true is -1 when signed: the order of the bytes turns round
    switch (p) {
      case Predicate::kEq:
        return Compare<uint8_t, Predicate::kEq>::run;
      case Predicate::kNe:
        return Compare<uint8_t, Predicate::kNe>::run;
      case Predicate::kSlt:
      case Predicate::kUgt:
        return Compare<uint8_t, Predicate::kUgt>::run;
      case Predicate::kSle:
      case Predicate::kUge:
        return Compare<uint8_t, Predicate::kUge>::run;
      case Predicate::kSgt:
      case Predicate::kUlt:
        return Compare<uint8_t, Predicate::kUlt>::run;
      case Predicate::kSge:
      case Predicate::kUle:
        return Compare<uint8_t, Predicate::kUle>::run;
      default:
        return nullptr;
    }
  }
  switch (p) {
    case Predicate::kEq:
      return integer_compare<Predicate::kEq>(elem);
    case Predicate::kNe:
      return integer_compare<Predicate::kNe>(elem);
    case Predicate::kSlt:
      return integer_compare<Predicate::kSlt>(elem);
    case Predicate::kSle:
      return integer_compare<Predicate::kSle>(elem);
    case Predicate::kSgt:
      return integer_compare<Predicate::kSgt>(elem);
    case Predicate::kSge:
      return integer_compare<Predicate::kSge>(elem);
    case Predicate::kUlt:
      return integer_compare<Predicate::kUlt>(elem);
    case Predicate::kUle:
      return integer_compare<Predicate::kUle>(elem);
    case Predicate::kUgt:
      return integer_compare<Predicate::kUgt>(elem);
    case Predicate::kUge:
      return integer_compare<Predicate::kUge>(elem);
    case Predicate::kFalse:
      return float_compare<Predicate::kFalse>(elem);
    case Predicate::kOeq:
      return float_compare<Predicate::kOeq>(elem);
    case Predicate::kOgt:
      return float_compare<Predicate::kOgt>(elem);
    case Predicate::kOge:
      return float_compare<Predicate::kOge>(elem);
    case Predicate::kOlt:
      return float_compare<Predicate::kOlt>(elem);
    case Predicate::kOle:
      return float_compare<Predicate::kOle>(elem);
    case Predicate::kOne:
      return float_compare<Predicate::kOne>(elem);
    case Predicate::kOrd:
      return float_compare<Predicate::kOrd>(elem);
    case Predicate::kUeq:
      return float_compare<Predicate::kUeq>(elem);
    case Predicate::kFUgt:
      return float_compare<Predicate::kFUgt>(elem);
    case Predicate::kFUge:
      return float_compare<Predicate::kFUge>(elem);
    case Predicate::kFUlt:
      return float_compare<Predicate::kFUlt>(elem);
    case Predicate::kFUle:
      return float_compare<Predicate::kFUle>(elem);
    case Predicate::kUne:
      return float_compare<Predicate::kUne>(elem);
    case Predicate::kUno:
      return float_compare<Predicate::kUno>(elem);
    case Predicate::kTrue:
      return float_compare<Predicate::kTrue>(elem);
    default:
      return nullptr;
  }
}

template <class T>
void select(void* out, const void* mask, const void* a, int a_step, const void* b, int b_step, int64_t n) {
  T* o = static_cast<T*>(out);
  const uint8_t* m = static_cast<const uint8_t*>(mask);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if (a_step != 0 && b_step != 0) {
    for (int64_t i = 0; i < n; ++i) {
      const T v = x[i], w = y[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else if (a_step != 0) {
    const T w = *y;
    for (int64_t i = 0; i < n; ++i) {
      const T v = x[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else if (b_step != 0) {
    const T v = *x;
    for (int64_t i = 0; i < n; ++i) {
      const T w = y[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else {
    const T v = *x, w = *y;
    for (int64_t i = 0; i < n; ++i) o[i] = m[i] != 0 ? v : w;
  }
}
SelectKernel FindSelect(int bytes) {
  switch (bytes) {
    case 1:
      return select<uint8_t>;
    case 2:
      return select<uint16_t>;
    case 4:
      return select<uint32_t>;
    default:
      return select<uint64_t>;
  }
}

// ---- conversion
// -------------------------------------------------------------------------------------------------
template <class From, class To>
void cast(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const From* x = static_cast<const From*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<To>(x[i]);
}
template <class From>
void to_bit(void* out, const void* a, int64_t n) {
  uint8_t* o = static_cast<uint8_t*>(out);
  const From* x = static_cast<const From*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<uint8_t>(x[i] & 1);
}
template <class To>
void from_bit_signed(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<To>(-static_cast<int>(x[i]));
}
// cvt.rzi saturates and makes NaN 0.
template <class From, class To>
void to_integer(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const From* x = static_cast<const From*>(a);
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
  for (int64_t i = 0; i < n; ++i) {
    const From v = x[i];
    To r;
    if (v != v)
      r = 0;
    else if (v <= low)
      r = std::numeric_limits<To>::min();
    else if (v >= high)
      r = std::numeric_limits<To>::max();
    else
      r = static_cast<To>(v);
    o[i] = r;
  }
}
template <class From, bool is_signed>
UnaryKernel integer_to(Elem to) {
  switch (to) {
    case Elem::kI8:
      return cast<From, int8_t>;
    case Elem::kI16:
      return cast<From, int16_t>;
    case Elem::kI32:
      return cast<From, int32_t>;
    case Elem::kI64:
      return cast<From, int64_t>;
    case Elem::kF32:
      return cast<From, float>;
    case Elem::kF64:
      return cast<From, double>;
    default:
      return nullptr;
  }
}
template <bool is_signed>
UnaryKernel integer_from(Elem from, Elem to) {
  switch (from) {
    case Elem::kI1:
      if constexpr (is_signed) {
        switch (to) {
          case Elem::kI8:
            return from_bit_signed<int8_t>;
          case Elem::kI16:
            return from_bit_signed<int16_t>;
          case Elem::kI32:
            return from_bit_signed<int32_t>;
          case Elem::kI64:
            return from_bit_signed<int64_t>;
          case Elem::kF32:
            return from_bit_signed<float>;
          case Elem::kF64:
            return from_bit_signed<double>;
          default:
            return nullptr;
        }
      }
      return integer_to<uint8_t, false>(to);
    case Elem::kI8:
      return integer_to<std::conditional_t<is_signed, int8_t, uint8_t>, is_signed>(to);
    case Elem::kI16:
      return integer_to<std::conditional_t<is_signed, int16_t, uint16_t>, is_signed>(to);
    case Elem::kI32:
      return integer_to<std::conditional_t<is_signed, int32_t, uint32_t>, is_signed>(to);
    case Elem::kI64:
      return integer_to<std::conditional_t<is_signed, int64_t, uint64_t>, is_signed>(to);
    default:
      return nullptr;
  }
}
template <class From>
UnaryKernel float_to_integer(OpKind kind, Elem to) {
  const bool is_signed = kind == OpKind::kFptosi;
  switch (to) {
    case Elem::kI1:
    case Elem::kI8:
      return is_signed ? to_integer<From, int8_t> : to_integer<From, uint8_t>;
    case Elem::kI16:
      return is_signed ? to_integer<From, int16_t> : to_integer<From, uint16_t>;
    case Elem::kI32:
      return is_signed ? to_integer<From, int32_t> : to_integer<From, uint32_t>;
    case Elem::kI64:
      return is_signed ? to_integer<From, int64_t> : to_integer<From, uint64_t>;
    default:
      return nullptr;
  }
}
UnaryKernel FindTrunci(Elem from, Elem to) {
  if (to == Elem::kI1) {
    switch (from) {
      case Elem::kI8:
        return to_bit<int8_t>;
      case Elem::kI16:
        return to_bit<int16_t>;
      case Elem::kI32:
        return to_bit<int32_t>;
      case Elem::kI64:
        return to_bit<int64_t>;
      default:
        return nullptr;
    }
  }
  return integer_from<true>(from, to);
}
UnaryKernel FindConvert(OpKind kind, Elem from, Elem to) {
  switch (kind) {
    case OpKind::kExtsi:
    case OpKind::kSitofp:
    case OpKind::kIndexCast:
      return from == to ? nullptr : integer_from<true>(from, to);
    case OpKind::kExtui:
    case OpKind::kUitofp:
    case OpKind::kIndexCastui:
      return from == to ? nullptr : integer_from<false>(from, to);
    case OpKind::kTrunci:
      return FindTrunci(from, to);
    case OpKind::kFptosi:
    case OpKind::kFptoui:
      return from == Elem::kF32   ? float_to_integer<float>(kind, to)
             : from == Elem::kF64 ? float_to_integer<double>(kind, to)
                                  : nullptr;
    case OpKind::kExtf:
      return from == Elem::kF32 && to == Elem::kF64 ? cast<float, double> : nullptr;
    case OpKind::kTruncf:
      return from == Elem::kF64 && to == Elem::kF32 ? cast<double, float> : nullptr;
    default:
      return nullptr;
  }
}

// ---- narrow floats
// ----------------------------------------------------------------------------------------------
void widen_bf16(void* out, const void* a, int64_t n) {
  uint32_t* o = static_cast<uint32_t*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<uint32_t>(x[i]) << 16;
}
void narrow_bf16(void* out, const void* a, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(out);
  const uint32_t* x = static_cast<const uint32_t*>(a);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = x[i];
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    o[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
  }
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define NEREID_F16C
#endif
void widen_f16(void* out, const void* a, int64_t n) {
  float* o = static_cast<float*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
#ifdef NEREID_F16C
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) o[i] = to_float(x[i], Elem::kF16);
}
void narrow_f16(void* out, const void* a, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(out);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
#ifdef NEREID_F16C
  const __m128i canonical = _mm_set1_epi16(0x7fff);
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    if (_mm256_movemask_ps(nan) != 0) {
      const __m256i wide = _mm256_castps_si256(nan);
      const __m128i mask = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
      h = _mm_blendv_epi8(h, canonical, mask);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i), h);
  }
#endif
  for (; i < n; ++i) o[i] = static_cast<uint16_t>(from_float(x[i], Elem::kF16));
}
void copy_f32(void* out, const void* a, int64_t n) {
  std::memmove(out, a, static_cast<size_t>(n) * sizeof(float));
}
template <Elem format>
void widen_f8(void* out, const void* a, int64_t n) {
  static const auto table = [] {
    struct Table {
      float value[256];
    } t;
    for (uint32_t i = 0; i < 256; ++i) t.value[i] = to_float(i, format);
    return t;
  }();
  float* o = static_cast<float*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = table.value[x[i]];
}
template <Elem format>
void narrow_f8(void* out, const void* a, int64_t n) {
  uint8_t* o = static_cast<uint8_t*>(out);
  const float* x = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; ++i)
    o[i] = static_cast<uint8_t>(from_float(x[i], format, Rounding::kNearestEven, true));
}
UnaryKernel FindWiden(Elem from) {
  switch (from) {
    case Elem::kBF16:
      return widen_bf16;
    case Elem::kF16:
      return widen_f16;
    case Elem::kF32:
      return copy_f32;
    case Elem::kF8E4M3FN:
      return widen_f8<Elem::kF8E4M3FN>;
    case Elem::kF8E5M2:
      return widen_f8<Elem::kF8E5M2>;
    case Elem::kF8E4M3FNUZ:
      return widen_f8<Elem::kF8E4M3FNUZ>;
    case Elem::kF8E5M2FNUZ:
      return widen_f8<Elem::kF8E5M2FNUZ>;
    case Elem::kF8E4M3B11FNUZ:
      return widen_f8<Elem::kF8E4M3B11FNUZ>;
    default:
      return nullptr;
  }
}
UnaryKernel FindNarrow(Elem to) {
  switch (to) {
    case Elem::kBF16:
      return narrow_bf16;
    case Elem::kF16:
      return narrow_f16;
    case Elem::kF32:
      return copy_f32;
    case Elem::kF8E4M3FN:
      return narrow_f8<Elem::kF8E4M3FN>;
    case Elem::kF8E5M2:
      return narrow_f8<Elem::kF8E5M2>;
    case Elem::kF8E4M3FNUZ:
      return narrow_f8<Elem::kF8E4M3FNUZ>;
    case Elem::kF8E5M2FNUZ:
      return narrow_f8<Elem::kF8E5M2FNUZ>;
    case Elem::kF8E4M3B11FNUZ:
      return narrow_f8<Elem::kF8E4M3B11FNUZ>;
    default:
      return nullptr;
  }
}

// ---- contiguous reductions
// --------------------------------------------------------------------------------------
template <class Op>
HWY_INLINE float fold(const float* a, int64_t n, float identity) {
  constexpr int kWays = 64;  // independent chains enough for any vector width
  if (n < kWays) {
    float r = identity;
    for (int64_t i = 0; i < n; ++i) r = Op::apply(r, a[i]);
    return r;
  }
  float part[kWays];
  for (int j = 0; j < kWays; ++j) part[j] = a[j];
  int64_t i = kWays;
  for (; i + kWays <= n; i += kWays)
    for (int j = 0; j < kWays; ++j) part[j] = Op::apply(part[j], a[i + j]);
  for (; i < n; ++i) part[0] = Op::apply(part[0], a[i]);
  for (int w = kWays / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) part[j] = Op::apply(part[j], part[j + w]);
  return part[0];
}
float SumF32(const float* a, int64_t n) { return fold<AddOp>(a, n, 0.0f); }
float MaxF32(const float* a, int64_t n) { return n == 0 ? 0 : fold<MaxnumOp>(a, n, a[0]); }
float MinF32(const float* a, int64_t n) { return n == 0 ? 0 : fold<MinnumOp>(a, n, a[0]); }

// ---- matrix product
// --------------------------------------------------------------------------------------------- One block of
// kRows x (2 vectors) of c stays in registers for all of k.
template <int kRows, class D>
HWY_INLINE void micro(D d, const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b, int64_t ldb,
                      float* HWY_RESTRICT c, int64_t ldc, int64_t k) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> acc[kRows][2];
  for (int r = 0; r < kRows; ++r) {
    acc[r][0] = hn::LoadU(d, c + r * ldc);
    acc[r][1] = hn::LoadU(d, c + r * ldc + lanes);
  }
  for (int64_t p = 0; p < k; ++p) {
    const auto b0 = hn::LoadU(d, b + p * ldb);
    const auto b1 = hn::LoadU(d, b + p * ldb + lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto v = hn::Set(d, a[r * lda + p]);
      acc[r][0] = hn::MulAdd(v, b0, acc[r][0]);
      acc[r][1] = hn::MulAdd(v, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(acc[r][0], d, c + r * ldc);
    hn::StoreU(acc[r][1], d, c + r * ldc + lanes);
  }
}
void MatmulF32(const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t m,
               int64_t n, int64_t k) {
  const hn::ScalableTag<float> d;
  const auto width = 2 * static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + width <= n; j += width) {
    int64_t i = 0;
    for (; i + 6 <= m; i += 6) micro<6>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
    for (; i + 4 <= m; i += 4) micro<4>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
    for (; i < m; ++i) micro<1>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
  }
  if (j < n) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) {
        const float v = a[i * lda + p];
        for (int64_t q = j; q < n; ++q) c[i * ldc + q] = std::fma(v, b[p * ldb + q], c[i * ldc + q]);
      }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nereid::ttir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nereid::ttir {

HWY_EXPORT(FindUnary);
HWY_EXPORT(FindBinary);
HWY_EXPORT(FindTernary);
HWY_EXPORT(FindCompare);
HWY_EXPORT(FindSelect);
HWY_EXPORT(FindConvert);
HWY_EXPORT(FindWiden);
HWY_EXPORT(FindNarrow);
HWY_EXPORT(SumF32);
HWY_EXPORT(MaxF32);
HWY_EXPORT(MinF32);
HWY_EXPORT(MatmulF32);

UnaryKernel unary_kernel(OpKind kind, Elem elem) { return HWY_DYNAMIC_DISPATCH(FindUnary)(kind, elem); }
BinaryKernel binary_kernel(OpKind kind, Elem elem) { return HWY_DYNAMIC_DISPATCH(FindBinary)(kind, elem); }
TernaryKernel ternary_kernel(OpKind kind, Elem elem, bool propagate_nan) {
  return HWY_DYNAMIC_DISPATCH(FindTernary)(kind, elem, propagate_nan);
}
BinaryKernel compare_kernel(Predicate predicate, Elem elem) {
  return HWY_DYNAMIC_DISPATCH(FindCompare)(predicate, elem);
}
SelectKernel select_kernel(int bytes) { return HWY_DYNAMIC_DISPATCH(FindSelect)(bytes); }
UnaryKernel convert_kernel(OpKind kind, Elem from, Elem to) {
  return HWY_DYNAMIC_DISPATCH(FindConvert)(kind, from, to);
}
UnaryKernel widen_kernel(Elem from) { return HWY_DYNAMIC_DISPATCH(FindWiden)(from); }
UnaryKernel narrow_kernel(Elem to) { return HWY_DYNAMIC_DISPATCH(FindNarrow)(to); }
float sum_f32(const float* a, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumF32)(a, n); }
float max_f32(const float* a, int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxF32)(a, n); }
float min_f32(const float* a, int64_t n) { return HWY_DYNAMIC_DISPATCH(MinF32)(a, n); }
void matmul_f32(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                int64_t c_stride, int64_t m, int64_t n, int64_t k) {
  HWY_DYNAMIC_DISPATCH(MatmulF32)(a, a_stride, b, b_stride, c, c_stride, m, n, k);
}

Predicate predicate_named(std::string_view name, bool floats) {
  static constexpr std::string_view kIntegers[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                                   "sge", "ult", "ule", "ugt", "uge"};
  static constexpr std::string_view kFloats[] = {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                                 "ueq",   "ugt", "uge", "ult", "ule", "une", "uno", "true"};
  if (!floats) {
    for (size_t i = 0; i < std::size(kIntegers); ++i)
      if (name == kIntegers[i]) return static_cast<Predicate>(i);
  } else {
    for (size_t i = 0; i < std::size(kFloats); ++i)
      if (name == kFloats[i]) return static_cast<Predicate>(static_cast<size_t>(Predicate::kFalse) + i);
  }
  return Predicate::kInvalid;
}

}  // namespace nereid::ttir
#endif  // HWY_ONCE
