// Integer and pointer tensors, lazily where they can be. Each falls back to elements.
#include <algorithm>

#include "nereid/ttir/exec/affine.h"
#include "nereid/ttir/exec/handlers/handlers.h"

namespace nereid::ttir::handlers {
namespace {

bool lazy(const Value& v) { return v.form == Form::kUniform || v.form == Form::kAffine; }

// Sets the result where it is affine and no lane wraps.
bool try_affine(Machine& m, const Instruction& i, const Value& a, const Value& b) {
  if (!lazy(a) || !lazy(b)) return false;
  if (i.kind == OpKind::kAddi || i.kind == OpKind::kSubi) {
    Affine sum;
    Range range;
    if (add_scaled(a, b, i.kind == OpKind::kAddi ? 1 : -1, i.shape.data(), i.rank, sum, range) &&
        fits(range, i.elem))
      return set_affine(m, i.out, sum, i.rank), true;
    if ((i.flags & kAddressFlag) && m.overflow_location < 0) m.overflow_location = i.location;
    return false;
  }
  const Affine x = *Affine::of(a), y = *Affine::of(b);
  std::optional<Affine> r;
  switch (i.kind) {
    case OpKind::kMuli:
      if (b.form == Form::kUniform)
        r = times(x, b.base);
      else if (a.form == Form::kUniform)
        r = times(y, a.base);
      break;
    case OpKind::kShli:
      if (b.form == Form::kUniform && b.base >= 0 && b.base < 62) r = times(x, int64_t{1} << b.base);
      break;
    default:
      return false;
  }
  if (!r) return false;
  const auto range = range_of(*r, i.shape.data(), i.rank);
  if (!range || !fits(*range, i.elem)) {
    if ((i.flags & kAddressFlag) && m.overflow_location < 0) m.overflow_location = i.location;
    return false;
  }
  set_affine(m, i.out, *r, i.rank);
  return true;
}

// Whether an addition, subtraction or multiplication of i32 lanes wraps anywhere.
bool wraps_i32(OpKind kind, const int32_t* a, int64_t a_step, const int32_t* b, int64_t b_step, int64_t n) {
  int64_t bad = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t x = a[k * a_step], y = b[k * b_step];
    const int64_t r = kind == OpKind::kAddi ? x + y : kind == OpKind::kSubi ? x - y : x * y;
    bad |= r != static_cast<int32_t>(r);
  }
  return bad != 0;
}

void note_overflow(Machine& m, const Instruction& i, Value& a, Value& b) {
  if (i.elem != Elem::kI32 || m.overflow_location >= 0 || !m.context().sanitize) return;
  if (i.kind != OpKind::kAddi && i.kind != OpKind::kSubi && i.kind != OpKind::kMuli) return;
  const auto data = [&](Value& v) {
    return v.form == Form::kUniform ? reinterpret_cast<const int32_t*>(&v.base)
                                    : reinterpret_cast<const int32_t*>(m.dense(v, i.elem, i, i.lanes));
  };
  if (wraps_i32(i.kind, data(a), a.form != Form::kUniform, data(b), b.form != Form::kUniform, i.lanes))
    m.overflow_location = i.location;
}

bool try_mask(Machine& m, const Instruction& i, const Value& a, const Value& b) {
  if (i.elem != Elem::kI1 || i.kind != OpKind::kAndi || i.rank > kLazyRank) return false;
  if (a.form == Form::kUniform) return m.copy(i.out, a.base != 0 ? i.in[1] : i.in[0]), true;
  if (b.form == Form::kUniform) return m.copy(i.out, b.base != 0 ? i.in[0] : i.in[1]), true;
  if (a.form != Form::kBox || b.form != Form::kBox) return false;
  int32_t low[kLazyRank], high[kLazyRank];
  for (int d = 0; d < i.rank; ++d) {
    low[d] = std::max(a.low[d], b.low[d]);
    high[d] = std::min(a.high[d], b.high[d]);
  }
  set_box(m, i.out, low, high, i.shape.data(), i.rank);
  return true;
}

}  // namespace

void integer_binary(Machine& m, const Instruction& i) {
  Value &a = m.slot(i.in[0]), &b = m.slot(i.in[1]);
  if (i.rank <= kLazyRank && (try_affine(m, i, a, b) || try_mask(m, i, a, b))) return;
  if (i.flags & kAddressFlag) note_overflow(m, i, a, b);
  binary(m, i);
}

void integer_compare(Machine& m, const Instruction& i) {
  const Value &a = m.slot(i.in[0]), &b = m.slot(i.in[1]);
  const auto predicate = static_cast<Predicate>(i.axis);
  if (i.rank <= kLazyRank && lazy(a) && lazy(b) && i.elem != Elem::kI1 && i.elem != Elem::kPointer) {
    bool comparable = true;
    if (predicate >= Predicate::kUlt && predicate <= Predicate::kUge) {
      const Affine x = *Affine::of(a), y = *Affine::of(b);
      const auto rx = range_of(x, i.shape.data(), i.rank), ry = range_of(y, i.shape.data(), i.rank);
      comparable = rx && ry && rx->low >= 0 && ry->low >= 0;
    }
    Affine difference;
    Range range;
    if (comparable && add_scaled(a, b, -1, i.shape.data(), i.rank, difference, range) &&
        set_comparison(m, i, difference, predicate))
      return;
  }
  binary(m, i);
}

void integer_convert(Machine& m, const Instruction& i) {
  const Value& a = m.slot(i.in[0]);
  if (a.form == Form::kAffine && is_integer(i.out_elem) && i.out_elem != Elem::kI1) {
    const auto range = range_of(*Affine::of(a), i.shape.data(), i.rank);
    const bool is_unsigned = i.kind == OpKind::kExtui || i.kind == OpKind::kIndexCastui;
    if (range && fits(*range, i.out_elem) && !(is_unsigned && range->low < 0))
      return set_affine(m, i.out, *Affine::of(a), i.rank);
  }
  if (i.kernel == nullptr) return m.copy(i.out, i.in[0]);  // between index and i64
  unary(m, i);
}

// Every lane of a pointer stays in its buffer's share of the address space, or becomes the wild address 0.
void addptr(Machine& m, const Instruction& i) {
  Value &p = m.slot(i.in[0]), &o = m.slot(i.in[1]);
  const int64_t bytes = i.axis;
  if (i.rank <= kLazyRank && lazy(p) && lazy(o)) {
    Affine sum;
    Range range;
    if (add_scaled(p, o, bytes, i.shape.data(), i.rank, sum, range)) {
      const int64_t home = buffer_of(p.base);
      if (buffer_of(range.low) == home && buffer_of(range.high) == home && range.low > 0)
        return set_affine(m, i.out, sum, i.rank);
      if (p.form == Form::kUniform && o.form == Form::kUniform) return m.set_uniform(i.out, 0);
    }
  }
  const int64_t n = i.lanes;
  const auto* from = reinterpret_cast<const int64_t*>(m.dense(p, Elem::kPointer, i, n));
  const std::byte* by = m.dense(o, i.out_elem, i, n);
  Tile* tile = m.pool().take(n * 8);
  auto* out = reinterpret_cast<int64_t*>(tile->data());
  const auto add = [&](auto* offsets) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t address = from[k];
      const auto moved = static_cast<int64_t>(static_cast<uint64_t>(address) +
                                              static_cast<uint64_t>(static_cast<int64_t>(offsets[k])) *
                                                  static_cast<uint64_t>(bytes));
      const bool far = static_cast<int64_t>(offsets[k]) > (int64_t{1} << 44) ||
                       static_cast<int64_t>(offsets[k]) < -(int64_t{1} << 44);
      out[k] = !far && buffer_of(moved) == buffer_of(address) ? moved : 0;
    }
  };
  switch (elem_bytes(i.out_elem)) {
    case 1:
      add(reinterpret_cast<const int8_t*>(by));
      break;
    case 2:
      add(reinterpret_cast<const int16_t*>(by));
      break;
    case 4:
      add(reinterpret_cast<const int32_t*>(by));
      break;
    default:
      add(reinterpret_cast<const int64_t*>(by));
      break;
  }
  m.set_dense(i.out, tile);
}

}  // namespace nereid::ttir::handlers
