#include "nereid/ttir/exec/elementwise/elementwise.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "nereid/ttir/ir/float_formats.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)  // the baseline, AVX2 and AVX-512 are enough
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nereid/ttir/exec/elementwise/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// SLEEF declares its vector functions only for the instruction set of the whole file, so those used are
// declared here.
#ifndef NEREID_TTIR_SLEEF
#define NEREID_TTIR_SLEEF
// clang-format off
#define NEREID_SLEEF_UNARY(F)                                                                          \
  F(exp, u10) F(exp2, u10) F(exp10, u10) F(expm1, u10) F(log, u10) F(log2, u10) F(log10, u10)          \
  F(log1p, u10) F(sin, u10) F(cos, u10) F(tan, u10) F(asin, u10) F(acos, u10) F(atan, u10)             \
  F(sinh, u10) F(cosh, u10) F(tanh, u10) F(asinh, u10) F(acosh, u10) F(atanh, u10) F(erf, u10)         \
  F(erfc, u15) F(cbrt, u10)
// clang-format on
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

// clang-format off: in this order
#include "nereid/ttir/exec/elementwise/elementwise_binary-inl.h"  // arithmetic on two operands
#include "nereid/ttir/exec/elementwise/elementwise_unary-inl.h"  // functions of one operand, and of three
#include "nereid/ttir/exec/elementwise/elementwise_compare-inl.h"  // comparisons, selection
#include "nereid/ttir/exec/elementwise/elementwise_convert-inl.h"  // conversions of types
#include "nereid/ttir/exec/elementwise/elementwise_whole-inl.h"  // reductions of rows, and the matrix product
// clang-format on

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
