#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"
#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir::handlers {
namespace {

constexpr int64_t kChunk = 512;  // lanes of a narrow float that are widened at a time

int64_t sign_extend(int64_t v, int bits) {
  return bits == 64 ? v : static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - bits)) >> (64 - bits);
}
uint64_t zero_extend(int64_t v, int bits) {
  return bits == 64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(v) & ((uint64_t{1} << bits) - 1);
}

// The pointer a kernel reads an operand from: the bits themselves when uniform, else the elements.
const void* operand(Machine& m, const Instruction& i, Value& v, Elem elem) {
  if (v.form == Form::kUniform) return &v.base;
  return m.dense(v, elem, i, m.lanes(i));
}

void set_uniform_bits(Machine& m, const Instruction& i, const void* element, Elem elem) {
  m.set_uniform(i.out, canonical_bits(element, elem));
}

bool is_division(OpKind kind) { return kind >= OpKind::kDivsi && kind <= OpKind::kFloordivsi; }

template <class T>
bool any_zero(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  bool zero = false;
  for (int64_t i = 0; i < n; ++i) zero |= x[i] == 0;
  return zero;
}

void check_divisor(Machine& m, const Instruction& i, Value& divisor) {
  bool zero;
  if (divisor.form == Form::kUniform) {
    zero = divisor.base == 0;
  } else {
    const int64_t n = m.lanes(i);
    const void* data = m.dense(divisor, i.elem, i, n);
    switch (elem_bytes(i.elem)) {
      case 1:
        zero = any_zero<int8_t>(data, n);
        break;
      case 2:
        zero = any_zero<int16_t>(data, n);
        break;
      case 4:
        zero = any_zero<int32_t>(data, n);
        break;
      default:
        zero = any_zero<int64_t>(data, n);
        break;
    }
  }
  if (zero) report(m, FindingKind::kDivisionByZero, i.location);
}

// Widens lanes [first, first + n) of an operand into `room`, or one lane when it is uniform.
const float* widened(const Value& v, const std::byte* data, UnaryKernel widen, int bytes, int64_t first,
                     int64_t n, float* room) {
  if (v.form == Form::kUniform) {
    widen(room, &v.base, 1);
  } else {
    widen(room, data + first * bytes, n);
  }
  return room;
}

}  // namespace

void constant(Machine& m, const Instruction& i) {
  const auto& bits = i.extra->constant;
  if (bits.size() == 1) {
    int64_t value = static_cast<int64_t>(bits[0]);
    m.set_uniform(i.out, canonical_bits(&value, i.out_elem));
    return;
  }
  const auto bytes = static_cast<size_t>(elem_bytes(i.out_elem));
  Tile* tile = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
  for (size_t k = 0; k < bits.size(); ++k) std::memcpy(tile->data() + k * bytes, &bits[k], bytes);
  m.set_dense(i.out, tile);
}

// The integer operations on plain scalars, without a kernel's detour.
void scalar_integer(Machine& m, const Instruction& i) {
  const int64_t a = m.slot(i.in[0]).base, b = m.slot(i.in[1]).base;
  const int bits = elem_bits(i.elem);
  int64_t r = 0;
  bool wrapped = false;
  switch (i.kind) {
    case OpKind::kAddi:
      wrapped = __builtin_add_overflow(a, b, &r);
      break;
    case OpKind::kSubi:
      wrapped = __builtin_sub_overflow(a, b, &r);
      break;
    case OpKind::kMuli:
      wrapped = __builtin_mul_overflow(a, b, &r);
      break;
    case OpKind::kAndi:
      r = a & b;
      break;
    case OpKind::kOri:
      r = a | b;
      break;
    case OpKind::kXori:
      r = a ^ b;
      break;
    case OpKind::kMinsi:
      r = std::min(a, b);
      break;
    case OpKind::kMaxsi:
      r = std::max(a, b);
      break;
    case OpKind::kDivsi:
    case OpKind::kRemsi:
    case OpKind::kDivui:
    case OpKind::kRemui: {
      if (b == 0) {
        report(m, FindingKind::kDivisionByZero, i.location);
        r = i.kind == OpKind::kDivsi || i.kind == OpKind::kDivui ? -1 : a;
      } else if (i.kind == OpKind::kDivsi) {
        r = b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
      } else if (i.kind == OpKind::kRemsi) {
        r = b == -1 ? 0 : a % b;
      } else if (i.kind == OpKind::kDivui) {
        r = static_cast<int64_t>(zero_extend(a, bits) / zero_extend(b, bits));
      } else {
        r = static_cast<int64_t>(zero_extend(a, bits) % zero_extend(b, bits));
      }
      break;
    }
    default:
      break;
  }
  const int64_t narrow = sign_extend(r, bits);
  if ((wrapped || narrow != r) && (i.flags & kAddressFlag) && bits >= 32 && m.overflow_location < 0)
    m.overflow_location = i.location;
  m.set_uniform(i.out, narrow);
}

void scalar_compare(Machine& m, const Instruction& i) {
  const int64_t a = m.slot(i.in[0]).base, b = m.slot(i.in[1]).base;
  const auto ua = zero_extend(a, elem_bits(i.elem)), ub = zero_extend(b, elem_bits(i.elem));
  bool r = false;
  switch (static_cast<Predicate>(i.axis)) {
    case Predicate::kEq:
      r = a == b;
      break;
    case Predicate::kNe:
      r = a != b;
      break;
    case Predicate::kSlt:
      r = a < b;
      break;
    case Predicate::kSle:
      r = a <= b;
      break;
    case Predicate::kSgt:
      r = a > b;
      break;
    case Predicate::kSge:
      r = a >= b;
      break;
    case Predicate::kUlt:
      r = ua < ub;
      break;
    case Predicate::kUle:
      r = ua <= ub;
      break;
    case Predicate::kUgt:
      r = ua > ub;
      break;
    default:
      r = ua >= ub;
      break;
  }
  m.set_uniform(i.out, r);
}

void binary(Machine& m, const Instruction& i) {
  Value &a = m.slot(i.in[0]), &b = m.slot(i.in[1]);
  const auto kernel = reinterpret_cast<BinaryKernel>(const_cast<void*>(i.kernel));
  if (is_division(i.kind)) check_divisor(m, i, b);
  const bool first = a.form == Form::kUniform, second = b.form == Form::kUniform;
  if (first && second) {
    int64_t element = 0;
    kernel(&element, &a.base, &b.base, 1, Uniform::kNeither);
    return set_uniform_bits(m, i, &element, i.out_elem);
  }
  const int64_t n = m.lanes(i);
  const void* x = operand(m, i, a, i.elem);
  const void* y = operand(m, i, b, i.elem);
  Tile* out = m.result_tile(i, n * elem_bytes(i.out_elem), elem_bytes(i.elem));
  kernel(out->data(), x, y, n, first ? Uniform::kFirst : second ? Uniform::kSecond : Uniform::kNeither);
  m.set_dense(i.out, out);
}

// kernels[0] widens the operands, kernels[1] narrows the result.
void binary_narrow(Machine& m, const Instruction& i) {
  Value &a = m.slot(i.in[0]), &b = m.slot(i.in[1]);
  const auto kernel = reinterpret_cast<BinaryKernel>(const_cast<void*>(i.kernel));
  const auto widen = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[0]));
  const auto narrow = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[1]));
  const int bytes = elem_bytes(i.elem);
  const bool uniform = a.form == Form::kUniform && b.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  const std::byte* y = static_cast<const std::byte*>(operand(m, i, b, i.elem));
  Tile* out = uniform ? nullptr : m.result_tile(i, n * bytes, bytes);
  alignas(64) float wa[kChunk], wb[kChunk];
  int64_t element = 0;
  std::byte* o = uniform ? reinterpret_cast<std::byte*>(&element) : out->data();
  const Uniform which = uniform                    ? Uniform::kNeither
                        : a.form == Form::kUniform ? Uniform::kFirst
                        : b.form == Form::kUniform ? Uniform::kSecond
                                                   : Uniform::kNeither;
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    const float* fa = widened(a, x, widen, bytes, first, count, wa);
    const float* fb = widened(b, y, widen, bytes, first, count, wb);
    float* result = which == Uniform::kFirst ? wb : wa;
    kernel(result, fa, fb, count, which);
    narrow(o + first * bytes, result, count);
  }
  if (uniform) return set_uniform_bits(m, i, &element, i.out_elem);
  m.set_dense(i.out, out);
}

void unary(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  const auto kernel = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.kernel));
  if (a.form == Form::kUniform) {
    int64_t element = 0;
    kernel(&element, &a.base, 1);
    return set_uniform_bits(m, i, &element, i.out_elem);
  }
  const int64_t n = m.lanes(i);
  const void* x = m.dense(a, i.elem, i, n);
  Tile* out = m.result_tile(i, n * elem_bytes(i.out_elem), elem_bytes(i.elem));
  kernel(out->data(), x, n);
  m.set_dense(i.out, out);
}

void unary_narrow(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  const auto kernel = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.kernel));
  const auto widen = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[0]));
  const auto narrow = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[1]));
  const bool uniform = a.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const int from = elem_bytes(i.elem), to = elem_bytes(i.out_elem);
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  Tile* out = uniform ? nullptr : m.result_tile(i, n * to, from);
  int64_t element = 0;
  std::byte* o = uniform ? reinterpret_cast<std::byte*>(&element) : out->data();
  alignas(64) float wa[kChunk];
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    widen(wa, x + first * from, count);
    kernel(wa, wa, count);
    narrow(o + first * to, wa, count);
  }
  if (uniform) return set_uniform_bits(m, i, &element, i.out_elem);
  m.set_dense(i.out, out);
}

void ternary(Machine& m, const Instruction& i) {
  Value* v[3] = {&m.slot(i.in[0]), &m.slot(i.in[1]), &m.slot(i.in[2])};
  const auto kernel = reinterpret_cast<TernaryKernel>(const_cast<void*>(i.kernel));
  if (v[0]->form == Form::kUniform && v[1]->form == Form::kUniform && v[2]->form == Form::kUniform) {
    int64_t element = 0;
    kernel(&element, &v[0]->base, &v[1]->base, &v[2]->base, 1);
    return set_uniform_bits(m, i, &element, i.out_elem);
  }
  const int64_t n = m.lanes(i);
  const void* x[3];
  for (int k = 0; k < 3; ++k) x[k] = m.dense(*v[k], i.elem, i, n);
  Tile* out = m.result_tile(i, n * elem_bytes(i.out_elem), elem_bytes(i.elem));
  kernel(out->data(), x[0], x[1], x[2], n);
  m.set_dense(i.out, out);
}

void ternary_narrow(Machine& m, const Instruction& i) {
  Value* v[3] = {&m.slot(i.in[0]), &m.slot(i.in[1]), &m.slot(i.in[2])};
  const auto kernel = reinterpret_cast<TernaryKernel>(const_cast<void*>(i.kernel));
  const auto widen = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[0]));
  const auto narrow = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[1]));
  const bool uniform =
      v[0]->form == Form::kUniform && v[1]->form == Form::kUniform && v[2]->form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const int bytes = elem_bytes(i.elem);
  const std::byte* x[3];
  for (int k = 0; k < 3; ++k)
    x[k] = uniform ? reinterpret_cast<const std::byte*>(&v[k]->base) : m.dense(*v[k], i.elem, i, n);
  Tile* out = uniform ? nullptr : m.result_tile(i, n * bytes, bytes);
  int64_t element = 0;
  std::byte* o = uniform ? reinterpret_cast<std::byte*>(&element) : out->data();
  alignas(64) float w[3][kChunk];
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    for (int k = 0; k < 3; ++k) widen(w[k], x[k] + first * bytes, count);
    kernel(w[0], w[0], w[1], w[2], count);
    narrow(o + first * bytes, w[0], count);
  }
  if (uniform) return set_uniform_bits(m, i, &element, i.out_elem);
  m.set_dense(i.out, out);
}

void compare_narrow(Machine& m, const Instruction& i) {
  Value &a = m.slot(i.in[0]), &b = m.slot(i.in[1]);
  const auto kernel = reinterpret_cast<BinaryKernel>(const_cast<void*>(i.kernel));
  const auto widen = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[0]));
  const int bytes = elem_bytes(i.elem);
  const bool uniform = a.form == Form::kUniform && b.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  const std::byte* y = static_cast<const std::byte*>(operand(m, i, b, i.elem));
  Tile* out = m.pool().take(n);
  alignas(64) float wa[kChunk], wb[kChunk];
  const Uniform which = uniform                    ? Uniform::kNeither
                        : a.form == Form::kUniform ? Uniform::kFirst
                        : b.form == Form::kUniform ? Uniform::kSecond
                                                   : Uniform::kNeither;
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    const float* fa = widened(a, x, widen, bytes, first, count, wa);
    const float* fb = widened(b, y, widen, bytes, first, count, wb);
    kernel(out->data() + first, fa, fb, count, which);
  }
  if (!uniform) return m.set_dense(i.out, out);
  const auto bit = static_cast<int64_t>(out->data()[0]);
  m.pool().release(out);
  m.set_uniform(i.out, bit);
}

void select(Machine& m, const Instruction& i) {
  Value &mask = m.slot(i.in[0]), &a = m.slot(i.in[1]), &b = m.slot(i.in[2]);
  if (mask.form == Form::kUniform) return m.copy(i.out, mask.base != 0 ? i.in[1] : i.in[2]);
  const int64_t n = m.lanes(i);
  const int bytes = elem_bytes(i.out_elem);
  const void* lanes = m.dense(mask, Elem::kI1, i, n);
  const void* x = operand(m, i, a, i.out_elem);
  const void* y = operand(m, i, b, i.out_elem);
  Tile* out = m.pool().take(n * bytes);
  reinterpret_cast<SelectKernel>(const_cast<void*>(i.kernel))(out->data(), lanes, x, a.form != Form::kUniform,
                                                              y, b.form != Form::kUniform, n);
  m.set_dense(i.out, out);
}

void convert(Machine& m, const Instruction& i) { unary(m, i); }

// Any float format but f64 to any other, through f32; an integer's side is f32 already.
void convert_narrow(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  const auto into = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[0]));
  const auto from = reinterpret_cast<UnaryKernel>(const_cast<void*>(i.extra->kernels[1]));
  const bool uniform = a.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const int in_bytes = elem_bytes(i.elem), out_bytes = elem_bytes(i.out_elem);
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  Tile* out = uniform ? nullptr : m.pool().take(n * out_bytes);
  int64_t element = 0;
  std::byte* o = uniform ? reinterpret_cast<std::byte*>(&element) : out->data();
  alignas(64) float wide[kChunk];
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    into(wide, x + first * in_bytes, count);
    from(o + first * out_bytes, wide, count);
  }
  if (uniform) return set_uniform_bits(m, i, &element, i.out_elem);
  m.set_dense(i.out, out);
}

// Float to a narrower float where f32 cannot stand between (from f64, or rounding toward zero).
void narrow_toward_zero(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  const bool uniform = a.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const auto in_bytes = static_cast<size_t>(elem_bytes(i.elem)),
             out_bytes = static_cast<size_t>(elem_bytes(i.out_elem));
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  Tile* out = uniform ? nullptr : m.pool().take(n * static_cast<int64_t>(out_bytes));
  int64_t element = 0;
  std::byte* o = uniform ? reinterpret_cast<std::byte*>(&element) : out->data();
  const auto rounding = i.axis != 0 ? Rounding::kTowardZero : Rounding::kNearestEven;
  for (int64_t k = 0; k < n; ++k) {
    uint64_t bits = 0;
    std::memcpy(&bits, x + static_cast<size_t>(k) * in_bytes, in_bytes);
    const uint64_t result = from_double(to_double(bits, i.elem), i.out_elem, rounding, is_float8(i.out_elem));
    std::memcpy(o + static_cast<size_t>(k) * out_bytes, &result, out_bytes);
  }
  if (uniform) return set_uniform_bits(m, i, &element, i.out_elem);
  m.set_dense(i.out, out);
}

void bitcast(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  if (a.form == Form::kUniform) {
    int64_t bits = a.base;
    return m.set_uniform(i.out, canonical_bits(&bits, i.out_elem));
  }
  if (i.elem == i.out_elem) return m.copy(i.out, i.in[0]);
  m.dense(a, i.elem, i, m.lanes(i));
  m.share_elements(i.out, i.in[0]);
}

// To i1 from a float: its integer part's lowest bit is not what anyone means; MLIR's fptoui to i1 truncates.
void integer_to_i1(Machine& m, const Instruction& i) {
  unary(m, i);
  Value& r = m.slot(i.out);
  if (r.form == Form::kUniform) {
    r.base &= 1;
    return;
  }
  auto* bytes = reinterpret_cast<uint8_t*>(r.tile->data());
  for (int64_t k = 0; k < m.lanes(i); ++k) bytes[k] &= 1;
}

void classify(Machine& m, const Instruction& i) {
  Value& a = m.slot(i.in[0]);
  const bool uniform = a.form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const auto bytes = static_cast<size_t>(elem_bytes(i.elem));
  const std::byte* x = static_cast<const std::byte*>(operand(m, i, a, i.elem));
  Tile* out = m.pool().take(n);
  for (int64_t k = 0; k < n; ++k) {
    uint64_t bits = 0;
    std::memcpy(&bits, x + static_cast<size_t>(k) * bytes, bytes);
    const double v = to_double(bits, i.elem);
    const bool is = i.kind == OpKind::kIsnan   ? std::isnan(v)
                    : i.kind == OpKind::kIsinf ? std::isinf(v)
                                               : std::isfinite(v);
    out->data()[k] = static_cast<std::byte>(is);
  }
  if (!uniform) return m.set_dense(i.out, out);
  const auto bit = static_cast<int64_t>(out->data()[0]);
  m.pool().release(out);
  m.set_uniform(i.out, bit);
}

}  // namespace nereid::ttir::handlers
