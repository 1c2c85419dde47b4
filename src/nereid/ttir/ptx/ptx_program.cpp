// Runs inline PTX on one lane, or on one pack of them: every register is 64 bits, of which a step reads what
// its type has.
#include "nereid/ttir/ptx/ptx_program.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "nereid/ttir/ir/float_formats.h"
#include "nereid/ttir/ptx/approximate.h"

namespace nereid::ttir {
namespace {

uint64_t low_bits(uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}
int64_t as_signed(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

double flushed(double v, const PtxStep& step) {
  return step.flush && std::abs(v) < 0x1p-126 ? std::copysign(0.0, v) : v;
}

double float_result(const PtxStep& step, double a, double b, double c) {
  switch (step.op) {
    case PtxOp::kAbs:
      return std::abs(a);
    case PtxOp::kNeg:
      return -a;
    case PtxOp::kAdd:
      return a + b;
    case PtxOp::kSub:
      return a - b;
    case PtxOp::kMulLo:
      return a * b;
    case PtxOp::kDiv:
      return a / b;
    case PtxOp::kFma:
      return step.type.elem == Elem::kF32
                 ? static_cast<double>(
                       std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)))
                 : std::fma(a, b, c);
    case PtxOp::kMax:
      return std::fmax(a, b);
    case PtxOp::kMin:
      return std::fmin(a, b);
    case PtxOp::kMaxNan:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
    case PtxOp::kMinNan:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
    case PtxOp::kCopysign:
      return std::copysign(b, a);  // the first operand's sign
    case PtxOp::kRcp:
      return 1 / a;
    case PtxOp::kSqrt:
      return std::sqrt(a);
    default:
      return a;
  }
}

uint64_t permuted(uint64_t a, uint64_t b, uint64_t selector) {
  const uint64_t bytes = low_bits(b, 32) << 32 | low_bits(a, 32);
  uint64_t r = 0;
  for (int k = 0; k < 4; ++k) {
    const uint64_t pick = selector >> (4 * k) & 15;
    uint64_t byte = bytes >> (8 * (pick & 7)) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * k);
  }
  return r;
}

uint64_t reversed_bits(uint64_t a, int bits) {
  uint64_t r = 0;
  for (int k = 0; k < bits; ++k) r |= (a >> k & 1) << (bits - 1 - k);
  return r;
}

uint64_t shifted_right(uint64_t a, uint64_t by, int bits, bool is_signed) {
  if (by >= static_cast<uint64_t>(bits)) return is_signed && as_signed(a, bits) < 0 ? ~uint64_t{0} : 0;
  return is_signed ? static_cast<uint64_t>(as_signed(a, bits) >> by) : a >> by;
}

uint64_t bit_field(uint64_t a, uint64_t position, uint64_t length, int bits, bool is_signed) {
  position &= 255, length &= 255;
  const auto width = static_cast<uint64_t>(bits);
  uint64_t r = 0;
  const uint64_t top = std::min(position + length, width) - 1;
  const uint64_t sign = is_signed && length != 0 ? a >> std::min(top, width - 1) & 1 : 0;
  for (uint64_t k = 0; k < width; ++k)
    r |= (k < length && position + k < width ? a >> (position + k) & 1 : sign) << k;
  return r;
}

uint64_t upper_half(uint64_t a, uint64_t b, int bits, bool is_signed) {
  if (is_signed)
    return static_cast<uint64_t>((static_cast<__int128>(as_signed(a, bits)) * as_signed(b, bits)) >> bits);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> bits);
}

uint64_t wide_product(uint64_t a, uint64_t b, int bits, bool is_signed) {
  return is_signed ? static_cast<uint64_t>(as_signed(a, bits)) * static_cast<uint64_t>(as_signed(b, bits))
                   : a * b;
}

uint64_t quotient(uint64_t a, uint64_t b, int bits, bool is_signed) {
  if (b == 0) return ~uint64_t{0};
  if (!is_signed) return a / b;
  const int64_t y = as_signed(b, bits);
  return y == -1 ? uint64_t{0} - a : static_cast<uint64_t>(as_signed(a, bits) / y);
}

uint64_t integer_result(const PtxStep& step, const uint64_t* v) {
  const int bits = elem_bits(step.type.elem);
  const bool sign = step.type.is_signed;
  const uint64_t a = v[0], b = v[1], c = v[2];
  const bool less = sign ? as_signed(a, bits) < as_signed(b, bits) : a < b;
  switch (step.op) {
    case PtxOp::kAbs:
      return as_signed(a, bits) < 0 ? uint64_t{0} - a : a;
    case PtxOp::kNeg:
      return uint64_t{0} - a;
    case PtxOp::kAdd:
      return a + b;
    case PtxOp::kSub:
      return a - b;
    case PtxOp::kMulLo:
      return a * b;
    case PtxOp::kMulHi:
      return upper_half(a, b, bits, sign);
    case PtxOp::kMulWide:
      return wide_product(a, b, bits, sign);
    case PtxOp::kMadLo:
      return a * b + c;
    case PtxOp::kMadHi:
      return upper_half(a, b, bits, sign) + c;
    case PtxOp::kMadWide:
      return wide_product(a, b, bits, sign) + c;
    case PtxOp::kDiv:
      return quotient(a, b, bits, sign);
    case PtxOp::kMax:
      return less ? b : a;
    case PtxOp::kMin:
      return less ? a : b;
    case PtxOp::kAnd:
      return a & b;
    case PtxOp::kOr:
      return a | b;
    case PtxOp::kXor:
      return a ^ b;
    case PtxOp::kNot:
      return step.type.elem == Elem::kI1 ? a ^ 1 : ~a;
    case PtxOp::kShl:
      return b >= static_cast<uint64_t>(bits) ? 0 : a << b;
    case PtxOp::kShr:
      return shifted_right(a, b, bits, sign);
    case PtxOp::kShfLeft:
    case PtxOp::kShfRight: {
      const uint64_t by = step.wrap ? c & 31 : std::min<uint64_t>(c, 32);
      const uint64_t both = b << 32 | a;
      return step.op == PtxOp::kShfRight ? both >> by : by == 0 ? b : both << by >> 32;
    }
    case PtxOp::kBrev:
      return reversed_bits(a, bits);
    case PtxOp::kClz:
      return static_cast<uint64_t>(std::countl_zero(a) - (64 - bits));
    case PtxOp::kPopc:
      return static_cast<uint64_t>(std::popcount(a));
    case PtxOp::kPrmt:
      return permuted(a, b, c);
    case PtxOp::kBfe:
      return bit_field(a, b, c, bits, sign);
    case PtxOp::kBfi: {
      const uint64_t position = c & 255, length = v[3] & 255;
      uint64_t r = b;
      for (uint64_t k = 0; k < length && position + k < static_cast<uint64_t>(bits); ++k)
        r = (r & ~(uint64_t{1} << (position + k))) | (a >> k & 1) << (position + k);
      return r;
    }
    case PtxOp::kLop3: {
      uint64_t r = 0;
      for (int k = 0; k < 32; ++k)
        r |= (v[3] >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
      return r;
    }
    default:
      return a;
  }
}

bool compared(Predicate p, uint64_t a, uint64_t b, const PtxType& type) {
  const Elem elem = is_float(type.elem) ? Elem::kF64 : Elem::kI64;
  const int bits = elem_bits(type.elem);
  uint8_t result = 0;
  if (elem == Elem::kF64) {
    const double x = to_double(a, type.elem), y = to_double(b, type.elem);
    compare_kernel(p, elem)(&result, &x, &y, 1, Uniform::kNeither);
  } else {
    // Sign-extended numbers compare alike as unsigned ones, too.
    const int64_t x = as_signed(a, bits), y = as_signed(b, bits);
    compare_kernel(p, elem)(&result, &x, &y, 1, Uniform::kNeither);
  }
  return result != 0;
}

uint64_t saturated_integer(double v, const PtxType& to) {
  const int bits = elem_bits(to.elem);
  if (std::isnan(v)) return 0;
  const double high = std::ldexp(1.0, to.is_signed ? bits - 1 : bits), low = to.is_signed ? -high : 0.0;
  if (v >= high) return low_bits(~uint64_t{0}, to.is_signed ? bits - 1 : bits);
  if (v <= low) return to.is_signed ? low_bits(uint64_t{1} << (bits - 1), bits) : 0;
  return to.is_signed ? low_bits(static_cast<uint64_t>(static_cast<int64_t>(v)), bits)
                      : static_cast<uint64_t>(v);
}

double rounded_to_integer(double v, char way) {
  return way == 'Z'   ? std::trunc(v)
         : way == 'M' ? std::floor(v)
         : way == 'P' ? std::ceil(v)
                      : std::nearbyint(v);
}

uint64_t converted(const PtxStep& step, uint64_t bits) {
  const bool from_float = is_float(step.from.elem), to_float_type = is_float(step.type.elem);
  const int from_bits = elem_bits(step.from.elem);
  if (!from_float && !to_float_type) {
    const int64_t v = step.from.is_signed ? as_signed(bits, from_bits) : static_cast<int64_t>(bits);
    if (!step.saturate) return static_cast<uint64_t>(v);
    const int width = elem_bits(step.type.elem);
    if (width == 64) return static_cast<uint64_t>(v);
    const int64_t high = (int64_t{1} << (step.type.is_signed ? width - 1 : width)) - 1,
                  low = step.type.is_signed ? -high - 1 : 0;
    return static_cast<uint64_t>(std::clamp(v, low, high));
  }
  if (!from_float) {
    // Exact in 80 bits; the float is rounded once.
    const long double v = step.from.is_signed ? static_cast<long double>(as_signed(bits, from_bits))
                                              : static_cast<long double>(bits);
    if (step.type.elem == Elem::kF32) return std::bit_cast<uint32_t>(static_cast<float>(v));
    return ttir::from_double(static_cast<double>(v), step.type.elem);
  }
  double v = flushed(to_double(bits, step.from.elem), step);
  if (!to_float_type)
    return saturated_integer(rounded_to_integer(v, step.rounding == 'n' ? 'N' : step.rounding), step.type);
  if (std::isupper(static_cast<unsigned char>(step.rounding))) v = rounded_to_integer(v, step.rounding);
  const bool narrow8 = is_float8(step.type.elem);
  if (step.saturate && !narrow8) v = v > 0 ? std::min(v, 1.0) : 0.0;
  return ttir::from_double(flushed(v, step), step.type.elem,
                           step.rounding == 'z' ? Rounding::kTowardZero : Rounding::kNearestEven, narrow8);
}

// Of floats: operations with an approximate form only, or written in it.
std::optional<Approximate> approximation(const PtxStep& step) {
  switch (step.op) {
    case PtxOp::kSin:
      return Approximate::kSin;
    case PtxOp::kCos:
      return Approximate::kCos;
    case PtxOp::kLg2:
      return Approximate::kLg2;
    case PtxOp::kEx2:
      return Approximate::kEx2;
    case PtxOp::kTanh:
      return Approximate::kTanh;
    case PtxOp::kRsqrt:
      return Approximate::kRsqrt;
    case PtxOp::kRcp:
      return step.approximate ? std::optional(Approximate::kRcp) : std::nullopt;
    case PtxOp::kSqrt:
      return step.approximate ? std::optional(Approximate::kSqrt) : std::nullopt;
    case PtxOp::kDiv:
      if (step.full) return Approximate::kDivFull;
      return step.approximate ? std::optional(Approximate::kDiv) : std::nullopt;
    default:
      return std::nullopt;
  }
}

uint64_t one(const PtxStep& step, const uint64_t* v) {
  const Elem elem = step.type.elem;
  if (step.op == PtxOp::kCvt || step.op == PtxOp::kCvtPack) return converted(step, v[0]);
  if (step.op == PtxOp::kSetp) return compared(step.compare, v[0], v[1], step.type);
  if (step.op == PtxOp::kSelp) return v[2] & 1 ? v[0] : v[1];
  if (step.op == PtxOp::kSlct) {
    const bool at_least = is_float(step.from.elem)
                              ? to_double(low_bits(v[2], elem_bits(step.from.elem)), step.from.elem) >= 0
                              : as_signed(v[2], 32) >= 0;
    return at_least ? v[0] : v[1];
  }
  if (step.op == PtxOp::kMov) return v[0];
  if (!is_float(elem)) return integer_result(step, v);
  if (const auto op = approximation(step)) {
    const uint64_t bits = approximate_bits(*op, elem, v[0], step.flush, v[1]);
    if (!step.saturate) return bits;
    const double r = to_double(bits, elem);
    return ttir::from_double(r > 0 ? std::min(r, 1.0) : 0.0, elem);
  }
  // Sign operations keep a NaN's bits as they are.
  double x[3];
  for (int k = 0; k < 3; ++k) x[k] = flushed(to_double(v[k], elem), step);
  double r = flushed(float_result(step, x[0], x[1], x[2]), step);
  if (step.saturate) r = r > 0 ? std::min(r, 1.0) : 0.0;
  return ttir::from_double(r, elem);
}

}  // namespace

void PtxProgram::start(uint64_t* registers) const { std::copy(initial_.begin(), initial_.end(), registers); }

void PtxProgram::run(uint64_t* registers) const {
  for (const PtxStep& step : steps_) {
    const PtxType& reads = step.op == PtxOp::kCvt || step.op == PtxOp::kCvtPack ? step.from : step.type;
    const int in_bits = elem_bits(reads.elem),
              out_bits = elem_bits(step.op == PtxOp::kSetp ? Elem::kI1 : step.type.elem);
    const bool widens = step.op == PtxOp::kMulWide || step.op == PtxOp::kMadWide;
    uint64_t v[4] = {};
    if (step.op == PtxOp::kUnpack) {
      const uint64_t whole = registers[step.in[0]];
      registers[step.out[0]] = low_bits(whole, in_bits / 2);
      registers[step.out[1]] = low_bits(whole >> (in_bits / 2), in_bits / 2);
      continue;
    }
    if (step.op == PtxOp::kPack) {
      registers[step.out[0]] = low_bits(registers[step.in[0]], in_bits / 2) |
                               low_bits(registers[step.in[1]], in_bits / 2) << (in_bits / 2);
      continue;
    }
    uint64_t result = 0;
    for (int half = 0; half < step.type.halves; ++half) {
      if (step.op == PtxOp::kCvtPack) {  // the first operand becomes the upper half
        v[0] = low_bits(registers[step.in[static_cast<size_t>(1 - half)]], in_bits);
      } else {
        for (size_t k = 0; k < step.in.size(); ++k) {
          const uint64_t whole = registers[step.in[k]];
          const bool as_it_is = (step.op == PtxOp::kSelp && k == 2) || (step.op == PtxOp::kSlct && k == 2) ||
                                (widens && k == 2) || k == 3;
          // Shifts and fields take their counts as 32 bits whatever is shifted.
          const bool count =
              (step.op == PtxOp::kShl || step.op == PtxOp::kShr || step.op == PtxOp::kBfe ||
               step.op == PtxOp::kBfi || step.op == PtxOp::kShfLeft || step.op == PtxOp::kShfRight) &&
              k >= (step.op == PtxOp::kBfi ? 2u : 1u) &&
              !(k == 1 && (step.op == PtxOp::kShfLeft || step.op == PtxOp::kShfRight));
          v[k] = as_it_is ? whole
                 : count  ? low_bits(whole, 32)
                          : low_bits(whole >> (half * in_bits), in_bits);
        }
      }
      const uint64_t bits = low_bits(one(step, v), widens ? 2 * out_bits : out_bits);
      result |= step.type.halves == 2 ? bits << (half * out_bits) : bits;
    }
    registers[step.out[0]] = result;
  }
}

}  // namespace nereid::ttir
