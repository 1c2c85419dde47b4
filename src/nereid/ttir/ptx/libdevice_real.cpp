#include "nereid/ttir/ptx/approximate.h"
#include "nereid/ttir/ptx/libdevice_table.h"

namespace nereid::ttir::libdevice {
namespace {

// rcp.approx.ftz.f64: the upper words of argument and result are all there is, and no subnormal number. How
// the result is rounded the PTX ISA leaves open: here to the nearest.
double reciprocal_of_high_word(double a) {
  constexpr uint64_t kHigh = 0xffffffff00000000u;
  const auto flushed = [](double x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x;
  };
  const double r = flushed(1.0 / flushed(std::bit_cast<double>(std::bit_cast<uint64_t>(a) & kHigh)));
  return std::isfinite(r) ? std::bit_cast<double>((std::bit_cast<uint64_t>(r) + 0x80000000u) & kHigh) : r;
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
  constexpr double kOverflow = 713;  // of double's; of a larger argument the library throws
  if (std::isnan(x)) return x;
  if (std::abs(static_cast<double>(x)) > kOverflow)
    return std::copysign(std::numeric_limits<T>::infinity(), order == 1 ? x : T(1));
  const double size = std::abs(static_cast<double>(x));
  return static_cast<T>(std::cyl_bessel_i(static_cast<double>(order), size)) *
         (order == 1 && x < 0 ? T(-1) : T(1));
}

// Functions that exist for f32 with an f behind, and for f64.

}  // namespace

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
  table.emplace("__nv_fast_sinf", entry([](float a) { return fast::sin(a); }));
  table.emplace("__nv_fast_cosf", entry([](float a) { return fast::cos(a); }));
  table.emplace("__nv_fast_tanf", entry([](float a) { return fast::tan(a); }));
  table.emplace("__nv_fast_expf", entry([](float a) { return fast::exp(a); }));
  table.emplace("__nv_fast_exp10f", entry([](float a) { return fast::exp10(a); }));
  table.emplace("__nv_fast_logf", entry([](float a) { return fast::log(a); }));
  table.emplace("__nv_fast_log2f", entry([](float a) { return fast::log2(a); }));
  table.emplace("__nv_fast_log10f", entry([](float a) { return fast::log10(a); }));
  table.emplace("__nv_fast_powf", entry([](float a, float b) { return fast::pow(a, b); }));
  table.emplace("__nv_fast_fdividef", entry([](float a, float b) { return fast::divide(a, b); }));
  table.emplace("__nv_frsqrt_rn",
                entry([](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }));
  table.emplace("__nv_rcp64h", entry([](double a) { return reciprocal_of_high_word(a); }));
}

}  // namespace nereid::ttir::libdevice
