// PTX's approximate instructions with the error that they may have: the exact result moved within the bound
// that the PTX ISA manual gives ("Floating Point Instructions") or, for half precision, that the type can
// show.
//
// The error is a function of the operands' bits alone. Its size is three quarters of what the bound leaves
// after rounding, or more; its sign is the same for 2^16 neighbouring floats, as a hardware table's is, and
// has no bias over many such segments. So a kernel that needs more than the manual promises is wrong
// somewhere, and one that does not sees noise no larger than the hardware's.
//
//   instruction       largest error                       special ranges
//   rcp.approx.f32    1 ulp
//   div.approx.f32    2 ulp                               2^126 < |b| < 2^128: 0, or NaN for infinite a
//   div.full.f32      2 ulp
//   sqrt.approx.f32   2^-23 relative
//   rsqrt.approx.f32  2^-22.9 relative
//   sin, cos.approx   2^-20.5 absolute in [-2pi, 2pi]     beyond: |a| * 2^-23 (2^-14.7 at 100 pi), no more
//   than 2 lg2.approx.f32    2^-22.6 absolute in (0.5, 2)        elsewhere 2^-22 relative ex2.approx.f32
//   2^-22.5 relative tanh.approx.f32   2^-11 relative ex2.approx.f16    2^-9.9 relative; bf16: 2^-7
//   tanh.approx.f16   2^-10.987 absolute; bf16: 2^-8
//   rcp, rsqrt.approx.ftz.f64: the upper 32 bits
// Zeros, infinities and NaNs give what the manual's tables say, exactly; so does a tanh that is one to the
// last bit of its type, for the hardware's table ends there.
#pragma once

#include <cstdint>

#include "nereid/ttir/exec/elementwise/elementwise.h"

namespace nereid::ttir {

enum class Approximate : uint8_t { kRcp, kDiv, kDivFull, kSqrt, kRsqrt, kSin, kCos, kLg2, kEx2, kTanh };

// `flush`: .ftz, subnormal operands and results are zeros of their sign. `b` is a divisor.
float approximate(Approximate op, float a, bool flush, float b = 1);
// On the bits of any float type; what it computes on narrow floats is rounded to them.
uint64_t approximate_bits(Approximate op, Elem elem, uint64_t a, bool flush, uint64_t b = 0);
// The same on n floats, for operations of one operand.
UnaryKernel approximate_kernel(Approximate op, bool flush);

// libdevice's fast functions, made of these as its code for NVIDIA's GPUs is (with .ftz, as Triton links it).
namespace fast {
float sin(float a);
float cos(float a);
float tan(float a);
float exp(float a);
float exp10(float a);
float log(float a);
float log2(float a);
float log10(float a);
float pow(float a, float b);
float divide(float a, float b);
}  // namespace fast

}  // namespace nereid::ttir
