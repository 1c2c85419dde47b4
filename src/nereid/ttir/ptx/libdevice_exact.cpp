#include "nereid/ttir/ptx/libdevice_table.h"

namespace nereid::ttir::libdevice {
namespace {

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
                    // Three bits choose; prmt's fourth, which copies a sign, is masked off before it.
                    const unsigned pick = static_cast<uint32_t>(s) >> (4 * k) & 7u;
                    r |= (static_cast<uint32_t>(bytes >> (8 * pick)) & 255u) << (8 * k);
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

}  // namespace

void add_exact(Table& table) {
  add_directed(table);
  add_integer(table);
  add_bits(table);
}

}  // namespace nereid::ttir::libdevice
