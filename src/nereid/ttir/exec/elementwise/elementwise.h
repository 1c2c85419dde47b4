// Loops over whole tiles: the arithmetic of one operation on n elements, for the instruction set of this
// machine.
//
// Kernels exist for the types that TTIR computes in: i1 (a byte, 0 or 1), i8 to i64, f32, f64. Narrower
// floats go through f32, `narrow_floats.h` says how. Pointers may be equal (in place) but not overlap
// otherwise.
#pragma once

#include <cstdint>
#include <string_view>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Which operand is one element for all lanes.
enum class Uniform : uint8_t { kNeither, kFirst, kSecond };

using UnaryKernel = void (*)(void* out, const void* a, int64_t n);
using BinaryKernel = void (*)(void* out, const void* a, const void* b, int64_t n, Uniform uniform);
using TernaryKernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);
// out[i] = mask[i] ? a[i] : b[i]; either operand may be one element for all lanes, marked by a step of 0.
using SelectKernel = void (*)(void* out, const void* mask, const void* a, int a_step, const void* b,
                              int b_step, int64_t n);

enum class Predicate : uint8_t {
  kEq,
  kNe,
  kSlt,
  kSle,
  kSgt,
  kSge,
  kUlt,
  kUle,
  kUgt,
  kUge,  // integers
  kFalse,
  kOeq,
  kOgt,
  kOge,
  kOlt,
  kOle,
  kOne,
  kOrd,
  kUeq,
  kFUgt,
  kFUge,
  kFUlt,
  kFUle,
  kUne,
  kUno,
  kTrue,  // floats
  kInvalid,
};
Predicate predicate_named(std::string_view name, bool floats);

// Null where the operation has no kernel for the type.
UnaryKernel unary_kernel(OpKind kind, Elem elem);
BinaryKernel binary_kernel(OpKind kind, Elem elem);
TernaryKernel ternary_kernel(OpKind kind, Elem elem, bool propagate_nan);
BinaryKernel compare_kernel(Predicate predicate, Elem elem);  // writes bytes, 0 or 1
SelectKernel select_kernel(int bytes);
// Conversions by kExtsi, kExtui, kTrunci, kSitofp, kUitofp, kFptosi, kFptoui, kExtf, kTruncf. Between floats
// any format goes; to and from integers f32 and f64.
UnaryKernel convert_kernel(OpKind kind, Elem from, Elem to);

// Float formats other than f64, to f32 and back: RNE, f8 saturating as cvt.satfinite does.
UnaryKernel widen_kernel(Elem from);
UnaryKernel narrow_kernel(Elem to);

// Reductions along contiguous memory, and of rows of `n` into one.
float sum_f32(const float* a, int64_t n);
float max_f32(const float* a, int64_t n);  // NaN ignored, as arith.maxnumf
float min_f32(const float* a, int64_t n);

// c[m][n] += a[m][k] * b[k][n], row-major with the given row strides (in elements).
void matmul_f32(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                int64_t c_stride, int64_t m, int64_t n, int64_t k);

}  // namespace nereid::ttir
