// The floating-point formats narrower than f32: exact widening, and narrowing as NVIDIA's cvt does it.
#pragma once

#include <bit>
#include <cstdint>

#include "nereid/ttir/ir/types.h"

namespace nereid::ttir {

enum class Rounding : uint8_t { kNearestEven, kTowardZero };

// Bits of one element of any floating-point format, to and from a double (every format here is exact in it).
// Narrowing overflow: f16, bf16 and f8E5M2 give infinity (to_bits) or the largest finite value (saturate);
// f8E4M3FN has no infinity: it gives NaN, or saturates.
double to_double(uint64_t bits, Elem format);
uint64_t from_double(double value, Elem format, Rounding rounding = Rounding::kNearestEven,
                     bool saturate = false);

// The same for f32, which is what kernels compute in.
float to_float(uint32_t bits, Elem format);
uint32_t from_float(float value, Elem format, Rounding rounding = Rounding::kNearestEven,
                    bool saturate = false);

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(0x7fff);  // what cvt.rn.bf16.f32 makes of NaN
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// tf32: the lower 13 bits of an f32 gone, by truncation (what the tensor core does with an f32 operand) or to
// the nearest, ties away from zero (cvt.rna.tf32.f32).
inline float tf32_truncated(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000u);
}
inline float tf32_rounded(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
}

}  // namespace nereid::ttir
