#include "nereid/ttir/exec/affine.h"

#include <algorithm>
#include <limits>

namespace nereid::ttir {

std::optional<Range> range_of(const Affine& a, const int32_t* shape, int rank) {
  Range r{a.base, a.base};
  for (int d = 0; d < rank; ++d) {
    if (a.stride[d] == 0) continue;
    int64_t extent;
    if (__builtin_mul_overflow(a.stride[d], static_cast<int64_t>(shape[d] - 1), &extent)) return std::nullopt;
    int64_t& end = extent < 0 ? r.low : r.high;
    if (__builtin_add_overflow(end, extent, &end)) return std::nullopt;
  }
  return r;
}

bool fits(const Range& range, Elem elem) {
  const int bits = elem_bits(elem);
  if (bits == 64) return true;
  const int64_t limit = int64_t{1} << (bits - 1);
  return range.low >= -limit && range.high < limit;
}

std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale) {
  Affine r;
  int64_t product;
  if (__builtin_mul_overflow(b.base, scale, &product) || __builtin_add_overflow(a.base, product, &r.base))
    return std::nullopt;
  for (int d = 0; d < kLazyRank; ++d)
    if (__builtin_mul_overflow(b.stride[d], scale, &product) ||
        __builtin_add_overflow(a.stride[d], product, &r.stride[d]))
      return std::nullopt;
  return r;
}

bool add_scaled(const Value& a, const Value& b, int64_t scale, const int32_t* shape, int rank, Affine& sum,
                Range& range) {
  int64_t product;
  bool overflow = __builtin_mul_overflow(b.base, scale, &product);
  overflow |= __builtin_add_overflow(a.base, product, &sum.base);
  range = {sum.base, sum.base};
  const bool a_steps = a.form == Form::kAffine, b_steps = b.form == Form::kAffine;
  for (int d = 0; d < rank; ++d) {
    overflow |= __builtin_mul_overflow(b_steps ? b.stride[d] : 0, scale, &product);
    overflow |= __builtin_add_overflow(a_steps ? a.stride[d] : 0, product, &sum.stride[d]);
    int64_t extent;
    overflow |= __builtin_mul_overflow(sum.stride[d], static_cast<int64_t>(shape[d] - 1), &extent);
    int64_t& end = extent < 0 ? range.low : range.high;
    overflow |= __builtin_add_overflow(end, extent, &end);
  }
  return !overflow;
}

std::optional<Affine> times(const Affine& a, int64_t factor) { return add_scaled(Affine{}, a, factor); }

void set_affine(Machine& m, int32_t slot, const Affine& a, int rank) {
  Value& v = m.slot(slot);
  m.clear(v);
  v.base = a.base;
  v.form = a.uniform(rank) ? Form::kUniform : Form::kAffine;
  for (int d = 0; d < kLazyRank; ++d) v.stride[d] = d < rank ? a.stride[d] : 0;
}

void set_box(Machine& m, int32_t slot, const int32_t* low, const int32_t* high, const int32_t* shape,
             int rank) {
  bool full = true;
  for (int d = 0; d < rank; ++d) {
    if (low[d] >= high[d]) return m.set_uniform(slot, 0);
    full = full && low[d] == 0 && high[d] == shape[d];
  }
  if (full) return m.set_uniform(slot, 1);
  Value& v = m.slot(slot);
  m.clear(v);
  v.form = Form::kBox;
  for (int d = 0; d < kLazyRank; ++d) {
    v.low[d] = d < rank ? low[d] : 0;
    v.high[d] = d < rank ? high[d] : 1;
  }
}

bool set_comparison(Machine& m, const Instruction& i, const Affine& a, Predicate predicate) {
  int dim = -1;
  for (int d = 0; d < i.rank; ++d) {
    if (a.stride[d] == 0 || i.shape[static_cast<size_t>(d)] == 1) continue;
    if (dim >= 0) return false;
    dim = d;
  }
  __int128 s = dim < 0 ? 0 : a.stride[dim], b = a.base;
  int32_t low[kLazyRank] = {}, high[kLazyRank] = {};
  for (int d = 0; d < i.rank; ++d) high[d] = i.shape[static_cast<size_t>(d)];
  const int64_t n = dim < 0 ? 1 : i.shape[static_cast<size_t>(dim)];

  if (predicate == Predicate::kEq || predicate == Predicate::kNe) {
    bool some = b == 0;
    int64_t at = 0;
    if (s != 0) {
      some = -b % s == 0 && -b / s >= 0 && -b / s < n;
      at = some ? static_cast<int64_t>(-b / s) : 0;
    }
    if (!some) {
      m.set_uniform(i.out, predicate == Predicate::kNe);
    } else if (s == 0) {
      m.set_uniform(i.out, predicate == Predicate::kEq);
    } else if (predicate == Predicate::kEq) {
      low[dim] = static_cast<int32_t>(at);
      high[dim] = static_cast<int32_t>(at + 1);
      set_box(m, i.out, low, high, i.shape.data(), i.rank);
    } else {
      return false;
    }
    return true;
  }
  // All the others as s * index + b < 0.
  switch (predicate) {
    case Predicate::kSle:
    case Predicate::kUle:
      b -= 1;
      break;
    case Predicate::kSgt:
    case Predicate::kUgt:
      s = -s, b = -b;
      break;
    case Predicate::kSge:
    case Predicate::kUge:
      s = -s, b = -b - 1;
      break;
    default:
      break;
  }
  if (s == 0) {
    m.set_uniform(i.out, b < 0);
    return true;
  }
  if (s > 0) {
    const __int128 end = -b <= 0 ? 0 : (-b + s - 1) / s;  // the first index that fails
    high[dim] = static_cast<int32_t>(std::min<__int128>(end, n));
  } else {
    const __int128 start = b < 0 ? 0 : b / -s + 1;  // the first index that holds
    low[dim] = static_cast<int32_t>(std::min<__int128>(start, n));
  }
  set_box(m, i.out, low, high, i.shape.data(), i.rank);
  return true;
}

}  // namespace nereid::ttir
