#include "nereid/ttir/libdevice.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "nereid/ttir/handlers.h"

namespace nereid::ttir {
namespace {

constexpr long double kPi = 3.14159265358979323846264338327950288L;

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}
template <class T>
uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// F is a captureless lambda; its parameters' types say how the bits are read.
template <class F, class R, class... A, size_t... I>
uint64_t call_with(const uint64_t* operands, std::index_sequence<I...>, R (F::*)(A...) const) {
  return bits_of<R>(F{}(from_bits<A>(operands[I])...));
}
template <class F, class R, class... A>
constexpr size_t arity(R (F::*)(A...) const) {
  return sizeof...(A);
}
template <class F>
uint64_t call(const uint64_t* operands) {
  return call_with<F>(operands, std::make_index_sequence<arity(&F::operator())>{}, &F::operator());
}
template <class T>
constexpr Elem elem_of() {
  if constexpr (std::is_same_v<T, float>)
    return Elem::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return Elem::kF64;
  else if constexpr (sizeof(T) == 8)
    return Elem::kI64;
  else if constexpr (sizeof(T) == 4)
    return Elem::kI32;
  else
    return Elem::kI1;
}

struct Entry {
  uint64_t (*call)(const uint64_t*);
  std::vector<Elem> elems;  // operands, then result
};
template <class F, class R, class... A>
Entry entry(F, R (F::*)(A...) const) {
  return {call<F>, {elem_of<A>()..., elem_of<R>()}};
}
template <class F>
Entry entry(F f) {
  return entry(f, &F::operator());
}

using Table = std::unordered_map<std::string, Entry>;

// Directed rounding of an exact-in-double (or long double) result.
enum class Direction { kDown, kNearest, kUp, kZero };
template <class T, class Wide>
T rounded(Wide exact, Direction direction) {
  T value = static_cast<T>(exact);
  const Wide back = static_cast<Wide>(value);
  if (back == exact || std::isnan(value)) return value;
  const T inf = std::numeric_limits<T>::infinity();
  switch (direction) {
    case Direction::kNearest:
      return value;
    case Direction::kDown:
      return back > exact ? std::nextafter(value, -inf) : value;
    case Direction::kUp:
      return back < exact ? std::nextafter(value, inf) : value;
    case Direction::kZero:
      return std::abs(back) > std::abs(exact) ? std::nextafter(value, T(0)) : value;
  }
  return value;
}
// The same for doubles, from the nearest result and the sign of what it misses by.
double toward(double nearest, double error, Direction direction) {  // exact = nearest + error
  if (error == 0 || std::isnan(error) || std::isinf(nearest)) return nearest;
  const double inf = std::numeric_limits<double>::infinity();
  switch (direction) {
    case Direction::kNearest:
      return nearest;
    case Direction::kDown:
      return error < 0 ? std::nextafter(nearest, -inf) : nearest;
    case Direction::kUp:
      return error > 0 ? std::nextafter(nearest, inf) : nearest;
    case Direction::kZero:
      return (error < 0) == (nearest > 0) ? std::nextafter(nearest, 0.0) : nearest;
  }
  return nearest;
}
double add_error(double a, double b, double s) {  // Knuth's two-sum
  const double bb = s - a;
  return (a - (s - bb)) + (b - bb);
}

template <class To, class From>
To to_integer(From v, Direction direction) {
  if (std::isnan(v)) return sizeof(To) == 8 ? static_cast<To>(static_cast<uint64_t>(1) << 63) : To{0};
  switch (direction) {
    case Direction::kDown:
      v = std::floor(v);
      break;
    case Direction::kUp:
      v = std::ceil(v);
      break;
    case Direction::kZero:
      v = std::trunc(v);
      break;
    default:
      v = std::nearbyint(v);
      break;
  }
  if (v <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (v >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}

template <class T>
T erf_inverse(T x) {
  if (!(std::abs(x) <= 1)) return std::numeric_limits<T>::quiet_NaN();
  if (std::abs(x) == 1) return std::copysign(std::numeric_limits<T>::infinity(), x);
  // Giles' first guess, then Newton on erf in double.
  const double v = static_cast<double>(x);
  const double w = -std::log((1 - v) * (1 + v));
  const double s = std::sqrt(w);
  double y = w < 5 ? v * 0.8862269254527580 * (1 + w * 0.1) : std::copysign(s, v);
  for (int k = 0; k < 40; ++k) {
    const double error =
        std::abs(v) < 0.5 ? std::erf(y) - v : (v > 0 ? (1 - v) - std::erfc(y) : std::erfc(-y) - (1 + v));
    const double slope = 1.1283791670955126 * std::exp(-y * y);
    const double f = error / slope;
    const double step = f / (1 + y * f);
    y -= step;
    if (std::abs(step) <= 1e-16 * std::abs(y)) break;
  }
  return static_cast<T>(y);
}
template <class T>
T erfc_inverse(T x) {
  if (!(x >= 0 && x <= 2)) return std::numeric_limits<T>::quiet_NaN();
  if (x == 0) return std::numeric_limits<T>::infinity();
  if (x == 2) return -std::numeric_limits<T>::infinity();
  const double v = static_cast<double>(x);
  double y = v < 1 ? std::sqrt(std::max(0.0, -std::log(v))) : -std::sqrt(std::max(0.0, -std::log(2 - v)));
  for (int k = 0; k < 100; ++k) {
    const double error = y > 0 ? std::erfc(y) - v : (2 - v) - std::erfc(-y);
    const double slope = -1.1283791670955126 * std::exp(-y * y);
    const double f = error / slope;
    const double step = f / (1 + y * f);
    y -= step;
    if (std::abs(step) <= 1e-16 * std::abs(y)) break;
  }
  return static_cast<T>(y);
}
template <class T>
T erfc_scaled(T x) {
  const double v = static_cast<double>(x);
  if (v < 20) return static_cast<T>(std::exp(v * v) * std::erfc(v));
  // The continued fraction, which converges fast out here.
  double r = 0;
  for (int k = 60; k > 0; --k) r = k / 2.0 / (v + r);
  return static_cast<T>(0.5641895835477563 / (v + r));
}
template <class T>
T bessel_i(T x, int order) {
  return std::cyl_bessel_i(static_cast<T>(order), std::abs(x)) * (order == 1 && x < 0 ? T(-1) : T(1));
}

// Functions that exist for f32 with an f behind, and for f64.
#define NEREID_BOTH1(name, expression)                         \
  table.emplace("__nv_" name "f", entry([](float a) -> float { \
                  using T = float;                             \
                  (void)sizeof(T);                             \
                  return expression;                           \
                }));                                           \
  table.emplace("__nv_" name, entry([](double a) -> double {   \
                  using T = double;                            \
                  (void)sizeof(T);                             \
                  return expression;                           \
                }));
#define NEREID_BOTH2(name, expression)                                  \
  table.emplace("__nv_" name "f", entry([](float a, float b) -> float { \
                  using T = float;                                      \
                  (void)sizeof(T);                                      \
                  return expression;                                    \
                }));                                                    \
  table.emplace("__nv_" name, entry([](double a, double b) -> double {  \
                  using T = double;                                     \
                  (void)sizeof(T);                                      \
                  return expression;                                    \
                }));

void add_real(Table& table) {
  NEREID_BOTH1("acos", std::acos(a))
  NEREID_BOTH1("acosh", std::acosh(a))
  NEREID_BOTH1("asin", std::asin(a))
  NEREID_BOTH1("asinh", std::asinh(a))
  NEREID_BOTH1("atan", std::atan(a))
  NEREID_BOTH1("atanh", std::atanh(a))
  NEREID_BOTH1("cbrt", std::cbrt(a))
  NEREID_BOTH1("ceil", std::ceil(a))
  NEREID_BOTH1("cos", std::cos(a))
  NEREID_BOTH1("cosh", std::cosh(a))
  NEREID_BOTH1("cospi", static_cast<T>(std::cos(kPi * std::fmod(static_cast<long double>(a), 2.0L))))
  NEREID_BOTH1("sinpi", static_cast<T>(std::sin(kPi * std::fmod(static_cast<long double>(a), 2.0L))))
  NEREID_BOTH1("cyl_bessel_i0", bessel_i(a, 0))
  NEREID_BOTH1("cyl_bessel_i1", bessel_i(a, 1))
  NEREID_BOTH1("erf", std::erf(a))
  NEREID_BOTH1("erfc", std::erfc(a))
  NEREID_BOTH1("erfcinv", erfc_inverse(a))
  NEREID_BOTH1("erfcx", erfc_scaled(a))
  NEREID_BOTH1("erfinv", erf_inverse(a))
  NEREID_BOTH1("exp", std::exp(a))
  NEREID_BOTH1("exp10", static_cast<T>(std::pow(10.0, static_cast<double>(a))))
  NEREID_BOTH1("exp2", std::exp2(a))
  NEREID_BOTH1("expm1", std::expm1(a))
  NEREID_BOTH1("fabs", std::abs(a))
  NEREID_BOTH1("floor", std::floor(a))
  NEREID_BOTH1("j0", static_cast<T>(::j0(a)))
  NEREID_BOTH1("j1", static_cast<T>(::j1(a)))
  NEREID_BOTH1("y0", static_cast<T>(::y0(a)))
  NEREID_BOTH1("y1", static_cast<T>(::y1(a)))
  NEREID_BOTH1("lgamma", std::lgamma(a))
  NEREID_BOTH1("log", std::log(a))
  NEREID_BOTH1("log10", std::log10(a))
  NEREID_BOTH1("log1p", std::log1p(a))
  NEREID_BOTH1("log2", std::log2(a))
  NEREID_BOTH1("logb", std::logb(a))
  NEREID_BOTH1("nearbyint", std::nearbyint(a))
  NEREID_BOTH1("normcdf", static_cast<T>(0.5L * std::erfc(-static_cast<long double>(a) *
                                                          0.70710678118654752440084436210484904L)))
  NEREID_BOTH1("normcdfinv",
               static_cast<T>(-1.41421356237309504880 * erfc_inverse(2 * static_cast<double>(a))))
  NEREID_BOTH1("rcbrt", static_cast<T>(1.0 / std::cbrt(static_cast<double>(a))))
  NEREID_BOTH1("rint", std::nearbyint(a))
  NEREID_BOTH1("round", std::round(a))
  NEREID_BOTH1("rsqrt", static_cast<T>(1.0 / std::sqrt(static_cast<double>(a))))
  NEREID_BOTH1("sin", std::sin(a))
  NEREID_BOTH1("sinh", std::sinh(a))
  NEREID_BOTH1("sqrt", std::sqrt(a))
  NEREID_BOTH1("tan", std::tan(a))
  NEREID_BOTH1("tanh", std::tanh(a))
  NEREID_BOTH1("tgamma", std::tgamma(a))
  NEREID_BOTH1("trunc", std::trunc(a))
  NEREID_BOTH2("atan2", std::atan2(a, b))
  NEREID_BOTH2("copysign", std::copysign(a, b))
  NEREID_BOTH2("fdim", std::fdim(a, b))
  NEREID_BOTH2("fmod", std::fmod(a, b))
  NEREID_BOTH2("fmax", std::fmax(a, b))
  NEREID_BOTH2("fmin", std::fmin(a, b))
  NEREID_BOTH2("hypot", std::hypot(a, b))
  NEREID_BOTH2("nextafter", std::nextafter(a, b))
  NEREID_BOTH2("pow", std::pow(a, b))
  NEREID_BOTH2("remainder", std::remainder(a, b))
  NEREID_BOTH2("rhypot", static_cast<T>(1.0 / std::hypot(static_cast<double>(a), static_cast<double>(b))))
  table.emplace("__nv_fmaf", entry([](float a, float b, float c) { return std::fma(a, b, c); }));
  table.emplace("__nv_fma", entry([](double a, double b, double c) { return std::fma(a, b, c); }));
  table.emplace("__nv_powif", entry([](float a, int32_t n) {
                  return static_cast<float>(std::pow(static_cast<double>(a), n));
                }));
  table.emplace("__nv_powi", entry([](double a, int32_t n) { return std::pow(a, n); }));
  table.emplace("__nv_ldexpf", entry([](float a, int32_t n) { return std::ldexp(a, n); }));
  table.emplace("__nv_ldexp", entry([](double a, int32_t n) { return std::ldexp(a, n); }));
  table.emplace("__nv_scalbnf", entry([](float a, int32_t n) { return std::scalbn(a, n); }));
  table.emplace("__nv_scalbn", entry([](double a, int32_t n) { return std::scalbn(a, n); }));
  table.emplace("__nv_jnf", entry([](int32_t n, float a) { return static_cast<float>(::jn(n, a)); }));
  table.emplace("__nv_jn", entry([](int32_t n, double a) { return ::jn(n, a); }));
  table.emplace("__nv_ynf", entry([](int32_t n, float a) { return static_cast<float>(::yn(n, a)); }));
  table.emplace("__nv_yn", entry([](int32_t n, double a) { return ::yn(n, a); }));
  table.emplace("__nv_ilogbf", entry([](float a) -> int32_t { return std::ilogb(a); }));
  table.emplace("__nv_ilogb", entry([](double a) -> int32_t { return std::ilogb(a); }));
  table.emplace("__nv_norm3df", entry([](float a, float b, float c) { return std::hypot(a, b, c); }));
  table.emplace("__nv_norm3d", entry([](double a, double b, double c) { return std::hypot(a, b, c); }));
  table.emplace("__nv_rnorm3df", entry([](float a, float b, float c) { return 1 / std::hypot(a, b, c); }));
  table.emplace("__nv_rnorm3d", entry([](double a, double b, double c) { return 1 / std::hypot(a, b, c); }));
  table.emplace("__nv_norm4df", entry([](float a, float b, float c, float d) {
                  return std::hypot(std::hypot(a, b), std::hypot(c, d));
                }));
  table.emplace("__nv_norm4d", entry([](double a, double b, double c, double d) {
                  return std::hypot(std::hypot(a, b), std::hypot(c, d));
                }));
  table.emplace("__nv_rnorm4df", entry([](float a, float b, float c, float d) {
                  return 1 / std::hypot(std::hypot(a, b), std::hypot(c, d));
                }));
  table.emplace("__nv_rnorm4d", entry([](double a, double b, double c, double d) {
                  return 1 / std::hypot(std::hypot(a, b), std::hypot(c, d));
                }));
  table.emplace("__nv_saturatef", entry([](float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }));
  table.emplace("__nv_fast_cosf", entry([](float a) { return std::cos(a); }));
  table.emplace("__nv_fast_sinf", entry([](float a) { return std::sin(a); }));
  table.emplace("__nv_fast_tanf", entry([](float a) { return std::tan(a); }));
  table.emplace("__nv_fast_expf", entry([](float a) { return std::exp(a); }));
  table.emplace("__nv_fast_exp10f",
                entry([](float a) { return static_cast<float>(std::pow(10.0, static_cast<double>(a))); }));
  table.emplace("__nv_fast_logf", entry([](float a) { return std::log(a); }));
  table.emplace("__nv_fast_log2f", entry([](float a) { return std::log2(a); }));
  table.emplace("__nv_fast_log10f", entry([](float a) { return std::log10(a); }));
  table.emplace("__nv_fast_powf", entry([](float a, float b) { return std::pow(a, b); }));
  table.emplace("__nv_fast_fdividef", entry([](float a, float b) { return a / b; }));
  table.emplace("__nv_frsqrt_rn",
                entry([](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }));
  table.emplace("__nv_rcp64h", entry([](double a) {
                  return std::bit_cast<double>(std::bit_cast<uint64_t>(1.0 / a) & 0xffffffff00000000u);
                }));
}

#define NEREID_ROUND4(name, lambda_d, lambda_n, lambda_u, lambda_z) \
  table.emplace(name "_rd", entry(lambda_d));                       \
  table.emplace(name "_rn", entry(lambda_n));                       \
  table.emplace(name "_ru", entry(lambda_u));                       \
  table.emplace(name "_rz", entry(lambda_z));
#define NEREID_DIRECTED(name, parameters, expression) \
  NEREID_ROUND4(                                      \
      name,                                           \
      [] parameters {                                 \
        constexpr auto way = Direction::kDown;        \
        return expression;                            \
      },                                              \
      [] parameters {                                 \
        constexpr auto way = Direction::kNearest;     \
        return expression;                            \
      },                                              \
      [] parameters {                                 \
        constexpr auto way = Direction::kUp;          \
        return expression;                            \
      },                                              \
      [] parameters {                                 \
        constexpr auto way = Direction::kZero;        \
        return expression;                            \
      })

void add_directed(Table& table) {
  // Products of floats are exact in double, sums, quotients and roots near enough in long double.
  NEREID_DIRECTED("__nv_fadd", (float a, float b),
                  (rounded<float, long double>(static_cast<long double>(a) + b, way)))
  NEREID_DIRECTED("__nv_fsub", (float a, float b),
                  (rounded<float, long double>(static_cast<long double>(a) - b, way)))
  NEREID_DIRECTED("__nv_fmul", (float a, float b), (rounded<float, double>(static_cast<double>(a) * b, way)))
  NEREID_DIRECTED("__nv_fdiv", (float a, float b),
                  (rounded<float, long double>(static_cast<long double>(a) / b, way)))
  NEREID_DIRECTED("__nv_frcp", (float a),
                  (rounded<float, long double>(1.0L / static_cast<long double>(a), way)))
  NEREID_DIRECTED("__nv_fsqrt", (float a),
                  (rounded<float, long double>(std::sqrt(static_cast<long double>(a)), way)))
  NEREID_DIRECTED(
      "__nv_fmaf", (float a, float b, float c),
      (rounded<float, long double>(static_cast<long double>(static_cast<double>(a) * b) + c, way)))
  NEREID_DIRECTED("__nv_dadd", (double a, double b), (toward(a + b, add_error(a, b, a + b), way)))
  NEREID_DIRECTED("__nv_dsub", (double a, double b), (toward(a - b, add_error(a, -b, a - b), way)))
  NEREID_DIRECTED("__nv_dmul", (double a, double b), (toward(a * b, std::fma(a, b, -(a * b)), way)))
  NEREID_DIRECTED("__nv_ddiv", (double a, double b),
                  (toward(a / b, -std::fma(a / b, b, -a) * (b < 0 ? -1 : 1), way)))
  NEREID_DIRECTED("__nv_drcp", (double a), (toward(1 / a, -std::fma(1 / a, a, -1.0) * (a < 0 ? -1 : 1), way)))
  NEREID_DIRECTED("__nv_dsqrt", (double a),
                  (toward(std::sqrt(a), -std::fma(std::sqrt(a), std::sqrt(a), -a), way)))
  NEREID_DIRECTED("__nv_fma", (double a, double b, double c),
                  (rounded<double, long double>(static_cast<long double>(a) * b + c, way)))
  NEREID_DIRECTED("__nv_double2float", (double a), (rounded<float, double>(a, way)))
  NEREID_DIRECTED("__nv_double2int", (double a), (to_integer<int32_t>(a, way)))
  NEREID_DIRECTED("__nv_double2uint", (double a), (static_cast<int32_t>(to_integer<uint32_t>(a, way))))
  NEREID_DIRECTED("__nv_double2ll", (double a), (to_integer<int64_t>(a, way)))
  NEREID_DIRECTED("__nv_double2ull", (double a), (static_cast<int64_t>(to_integer<uint64_t>(a, way))))
  NEREID_DIRECTED("__nv_float2int", (float a), (to_integer<int32_t>(a, way)))
  NEREID_DIRECTED("__nv_float2uint", (float a), (static_cast<int32_t>(to_integer<uint32_t>(a, way))))
  NEREID_DIRECTED("__nv_float2ll", (float a), (to_integer<int64_t>(a, way)))
  NEREID_DIRECTED("__nv_float2ull", (float a), (static_cast<int64_t>(to_integer<uint64_t>(a, way))))
  NEREID_DIRECTED("__nv_int2float", (int32_t a), (rounded<float, double>(a, way)))
  NEREID_DIRECTED("__nv_uint2float", (int32_t a), (rounded<float, double>(static_cast<uint32_t>(a), way)))
  NEREID_DIRECTED("__nv_ll2float", (int64_t a),
                  (rounded<float, long double>(static_cast<long double>(a), way)))
  NEREID_DIRECTED("__nv_ull2float", (int64_t a),
                  (rounded<float, long double>(static_cast<long double>(static_cast<uint64_t>(a)), way)))
  NEREID_DIRECTED("__nv_ll2double", (int64_t a),
                  (rounded<double, long double>(static_cast<long double>(a), way)))
  NEREID_DIRECTED("__nv_ull2double", (int64_t a),
                  (rounded<double, long double>(static_cast<long double>(static_cast<uint64_t>(a)), way)))
  table.emplace("__nv_int2double_rn", entry([](int32_t a) { return static_cast<double>(a); }));
  table.emplace("__nv_uint2double_rn",
                entry([](int32_t a) { return static_cast<double>(static_cast<uint32_t>(a)); }));
}

void add_integer(Table& table) {
  table.emplace("__nv_abs",
                entry([](int32_t a) { return a < 0 ? static_cast<int32_t>(-static_cast<uint32_t>(a)) : a; }));
  table.emplace("__nv_llabs",
                entry([](int64_t a) { return a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a; }));
  table.emplace("__nv_clz",
                entry([](int32_t a) -> int32_t { return std::countl_zero(static_cast<uint32_t>(a)); }));
  table.emplace("__nv_clzll",
                entry([](int64_t a) -> int32_t { return std::countl_zero(static_cast<uint64_t>(a)); }));
  table.emplace("__nv_popc",
                entry([](int32_t a) -> int32_t { return std::popcount(static_cast<uint32_t>(a)); }));
  table.emplace("__nv_popcll",
                entry([](int64_t a) -> int32_t { return std::popcount(static_cast<uint64_t>(a)); }));
  table.emplace("__nv_ffs", entry([](int32_t a) -> int32_t { return __builtin_ffs(a); }));
  table.emplace("__nv_ffsll", entry([](int64_t a) -> int32_t { return __builtin_ffsll(a); }));
  table.emplace("__nv_brev", entry([](int32_t a) -> int32_t {
                  uint32_t r = 0;
                  for (int b = 0; b < 32; ++b) r |= ((static_cast<uint32_t>(a) >> b) & 1u) << (31 - b);
                  return static_cast<int32_t>(r);
                }));
  table.emplace("__nv_brevll", entry([](int64_t a) -> int64_t {
                  uint64_t r = 0;
                  for (int b = 0; b < 64; ++b) r |= ((static_cast<uint64_t>(a) >> b) & 1u) << (63 - b);
                  return static_cast<int64_t>(r);
                }));
  table.emplace("__nv_byte_perm", entry([](int32_t a, int32_t b, int32_t s) -> int32_t {
                  const uint64_t bytes =
                      static_cast<uint64_t>(static_cast<uint32_t>(b)) << 32 | static_cast<uint32_t>(a);
                  uint32_t r = 0;
                  for (int k = 0; k < 4; ++k) {
                    const unsigned pick = static_cast<uint32_t>(s) >> (4 * k) & 15u;
                    uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7u))) & 255u;
                    if (pick & 8u) byte = byte & 128u ? 255u : 0u;
                    r |= byte << (8 * k);
                  }
                  return static_cast<int32_t>(r);
                }));
  table.emplace("__nv_mulhi", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>((static_cast<int64_t>(a) * b) >> 32);
                }));
  table.emplace("__nv_umulhi", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>(
                      (static_cast<uint64_t>(static_cast<uint32_t>(a)) * static_cast<uint32_t>(b)) >> 32);
                }));
  table.emplace("__nv_mul64hi", entry([](int64_t a, int64_t b) {
                  return static_cast<int64_t>((static_cast<__int128>(a) * b) >> 64);
                }));
  table.emplace(
      "__nv_umul64hi", entry([](int64_t a, int64_t b) {
        return static_cast<int64_t>(
            (static_cast<unsigned __int128>(static_cast<uint64_t>(a)) * static_cast<uint64_t>(b)) >> 64);
      }));
  table.emplace("__nv_mul24", entry([](int32_t a, int32_t b) {
                  const auto low = [](int32_t v) {
                    return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8);
                  };
                  return static_cast<int32_t>(low(a) * low(b));
                }));
  table.emplace("__nv_umul24", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>(static_cast<uint64_t>(a & 0xffffff) *
                                              static_cast<uint64_t>(b & 0xffffff));
                }));
  table.emplace(
      "__nv_sad", entry([](int32_t a, int32_t b, int32_t c) {
        const int64_t d = static_cast<int64_t>(a) - b;
        return static_cast<int32_t>(static_cast<uint32_t>(d < 0 ? -d : d) + static_cast<uint32_t>(c));
      }));
  table.emplace(
      "__nv_usad", entry([](int32_t a, int32_t b, int32_t c) {
        const int64_t d = static_cast<int64_t>(static_cast<uint32_t>(a)) - static_cast<uint32_t>(b);
        return static_cast<int32_t>(static_cast<uint32_t>(d < 0 ? -d : d) + static_cast<uint32_t>(c));
      }));
  table.emplace("__nv_hadd", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>((static_cast<int64_t>(a) + b) >> 1);
                }));
  table.emplace("__nv_rhadd", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>((static_cast<int64_t>(a) + b + 1) >> 1);
                }));
  table.emplace("__nv_uhadd", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>(
                      (static_cast<uint64_t>(static_cast<uint32_t>(a)) + static_cast<uint32_t>(b)) >> 1);
                }));
  table.emplace("__nv_urhadd", entry([](int32_t a, int32_t b) {
                  return static_cast<int32_t>(
                      (static_cast<uint64_t>(static_cast<uint32_t>(a)) + static_cast<uint32_t>(b) + 1) >> 1);
                }));
}

void add_bits(Table& table) {
  table.emplace("__nv_float_as_int", entry([](float a) { return std::bit_cast<int32_t>(a); }));
  table.emplace("__nv_float_as_uint", entry([](float a) { return std::bit_cast<int32_t>(a); }));
  table.emplace("__nv_int_as_float", entry([](int32_t a) { return std::bit_cast<float>(a); }));
  table.emplace("__nv_uint_as_float", entry([](int32_t a) { return std::bit_cast<float>(a); }));
  table.emplace("__nv_double_as_longlong", entry([](double a) { return std::bit_cast<int64_t>(a); }));
  table.emplace("__nv_longlong_as_double", entry([](int64_t a) { return std::bit_cast<double>(a); }));
  table.emplace("__nv_double2hiint",
                entry([](double a) { return static_cast<int32_t>(std::bit_cast<uint64_t>(a) >> 32); }));
  table.emplace("__nv_double2loint",
                entry([](double a) { return static_cast<int32_t>(std::bit_cast<uint64_t>(a)); }));
  table.emplace("__nv_hiloint2double", entry([](int32_t high, int32_t low) {
                  return std::bit_cast<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                                               static_cast<uint32_t>(low));
                }));
  table.emplace("__nv_llrintf", entry([](float a) { return to_integer<int64_t>(a, Direction::kNearest); }));
  table.emplace("__nv_llrint", entry([](double a) { return to_integer<int64_t>(a, Direction::kNearest); }));
  table.emplace("__nv_llroundf",
                entry([](float a) { return to_integer<int64_t>(std::round(a), Direction::kZero); }));
  table.emplace("__nv_llround",
                entry([](double a) { return to_integer<int64_t>(std::round(a), Direction::kZero); }));
  table.emplace("__nv_signbitf", entry([](float a) -> int32_t { return std::signbit(a); }));
  table.emplace("__nv_signbitd", entry([](double a) -> int32_t { return std::signbit(a); }));
  table.emplace("__nv_finitef", entry([](float a) -> int32_t { return std::isfinite(a); }));
  table.emplace("__nv_isfinited", entry([](double a) -> int32_t { return std::isfinite(a); }));
  table.emplace("__nv_isinff", entry([](float a) -> int32_t { return std::isinf(a); }));
  table.emplace("__nv_isinfd", entry([](double a) -> int32_t { return std::isinf(a); }));
  table.emplace("__nv_isnanf", entry([](float a) -> int32_t { return std::isnan(a); }));
  table.emplace("__nv_isnand", entry([](double a) -> int32_t { return std::isnan(a); }));
}

const Table& table() {
  static const Table* const all = [] {
    auto* t = new Table;
    add_real(*t);
    add_directed(*t);
    add_integer(*t);
    add_bits(*t);
    return t;
  }();
  return *all;
}

// The fast ones: what has a kernel of its own.
OpKind kernel_for(std::string_view symbol) {
  static const std::unordered_map<std::string_view, OpKind> kinds = {
      {"__nv_tanhf", OpKind::kTanh},      {"__nv_expf", OpKind::kExp},     {"__nv_exp2f", OpKind::kExp2},
      {"__nv_logf", OpKind::kLog},        {"__nv_log2f", OpKind::kLog2},   {"__nv_log10f", OpKind::kLog10},
      {"__nv_log1pf", OpKind::kLog1p},    {"__nv_expm1f", OpKind::kExpm1}, {"__nv_erff", OpKind::kErf},
      {"__nv_erfcf", OpKind::kErfc},      {"__nv_sinf", OpKind::kSin},     {"__nv_cosf", OpKind::kCos},
      {"__nv_tanf", OpKind::kTan},        {"__nv_sinhf", OpKind::kSinh},   {"__nv_coshf", OpKind::kCosh},
      {"__nv_asinf", OpKind::kAsin},      {"__nv_acosf", OpKind::kAcos},   {"__nv_atanf", OpKind::kAtan},
      {"__nv_asinhf", OpKind::kAsinh},    {"__nv_acoshf", OpKind::kAcosh}, {"__nv_atanhf", OpKind::kAtanh},
      {"__nv_sqrtf", OpKind::kSqrt},      {"__nv_rsqrtf", OpKind::kRsqrt}, {"__nv_floorf", OpKind::kFloor},
      {"__nv_ceilf", OpKind::kCeil},      {"__nv_fabsf", OpKind::kAbsf},   {"__nv_cbrtf", OpKind::kCbrt},
      {"__nv_powf", OpKind::kPowf},       {"__nv_atan2f", OpKind::kAtan2}, {"__nv_fast_expf", OpKind::kExp},
      {"__nv_rintf", OpKind::kRoundeven}, {"__nv_truncf", OpKind::kTrunc}};
  const auto found = kinds.find(symbol);
  return found == kinds.end() ? OpKind::kCount : found->second;
}

}  // namespace

External external_named(std::string_view symbol, const std::vector<Elem>& elems) {
  External e;
  const auto found = table().find(std::string(symbol));
  if (found == table().end()) return e;
  const auto& wanted = found->second.elems;
  if (wanted.size() != elems.size()) return e;
  for (size_t k = 0; k < elems.size(); ++k) {
    const bool truth = k + 1 == elems.size() && elems[k] == Elem::kI1 && wanted[k] == Elem::kI32;
    if (elems[k] != wanted[k] && !truth) return e;
  }
  const OpKind kind = kernel_for(symbol);
  if (kind != OpKind::kCount && elems.size() == 2) e.unary = unary_kernel(kind, elems[0]);
  if (kind != OpKind::kCount && elems.size() == 3) e.binary = binary_kernel(kind, elems[0]);
  e.call = found->second.call;
  return e;
}

namespace handlers {

// in: the operands; kernel: the one-lane function; extra->elems: the operands' types and the result's.
void external(Machine& m, const Instruction& i) {
  const auto call = reinterpret_cast<uint64_t (*)(const uint64_t*)>(const_cast<void*>(i.kernel));
  const auto& elems = i.extra->elems;
  const size_t operands = elems.size() - 1;
  bool uniform = true;
  for (size_t k = 0; k < operands; ++k) uniform = uniform && m.slot(i.in[k]).form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const std::byte* data[kInputs] = {};
  for (size_t k = 0; k < operands; ++k) {
    Value& v = m.slot(i.in[k]);
    data[k] = uniform ? reinterpret_cast<const std::byte*>(&v.base) : m.dense(v, elems[k], i, n);
  }
  const auto out_bytes = static_cast<size_t>(elem_bytes(i.out_elem));
  Tile* out = m.pool().take(n * static_cast<int64_t>(out_bytes));
  for (int64_t lane = 0; lane < n; ++lane) {
    uint64_t bits[kInputs] = {};
    for (size_t k = 0; k < operands; ++k)
      bits[k] = static_cast<uint64_t>(canonical_bits(data[k] + lane * elem_bytes(elems[k]), elems[k]));
    uint64_t result = call(bits);
    if (i.out_elem == Elem::kI1) result = result != 0;
    std::memcpy(out->data() + static_cast<size_t>(lane) * out_bytes, &result, out_bytes);
  }
  if (!uniform) return m.set_dense(i.out, out);
  const int64_t bits = canonical_bits(out->data(), i.out_elem);
  m.pool().release(out);
  m.set_uniform(i.out, bits);
}

}  // namespace handlers
}  // namespace nereid::ttir
