// Operations that only move elements. Tiles are shared where the order of the elements stays.
#include <algorithm>
#include <numeric>

#include "nereid/ttir/exec/affine.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

template <class T>
void permute(const T* in, T* out, const std::vector<int64_t>& out_shape,
             const std::vector<int64_t>& in_stride) {
  const size_t rank = out_shape.size();
  if (rank == 2 && in_stride[0] == 1) {  // a plain transpose, in blocks that fit the cache
    const int64_t rows = out_shape[0], columns = out_shape[1], pitch = in_stride[1];
    constexpr int64_t kBlock = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
        for (int64_t r = r0; r < std::min(rows, r0 + kBlock); ++r)
          for (int64_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
            out[r * columns + c] = in[c * pitch + r];
    return;
  }
  const int64_t n = std::accumulate(out_shape.begin(), out_shape.end(), int64_t{1}, std::multiplies<>());
  const int64_t inner = rank == 0 ? 1 : out_shape[rank - 1], step = rank == 0 ? 0 : in_stride[rank - 1];
  std::array<int64_t, kMaxRank> index{};
  int64_t from = 0;
  for (int64_t at = 0; at < n; at += inner) {
    for (int64_t k = 0; k < inner; ++k) out[at + k] = in[from + k * step];
    for (size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
      from += in_stride[d];
      if (++index[d] < out_shape[d]) break;
      from -= in_stride[d] * out_shape[d];
      index[d] = 0;
    }
  }
}

void permute_bytes(const std::byte* in, std::byte* out, int bytes, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& stride) {
  switch (bytes) {
    case 1:
      return permute(reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out), shape, stride);
    case 2:
      return permute(reinterpret_cast<const uint16_t*>(in), reinterpret_cast<uint16_t*>(out), shape, stride);
    case 4:
      return permute(reinterpret_cast<const uint32_t*>(in), reinterpret_cast<uint32_t*>(out), shape, stride);
    default:
      return permute(reinterpret_cast<const uint64_t*>(in), reinterpret_cast<uint64_t*>(out), shape, stride);
  }
}

// The operand's elements, in the operand's own shape (extra->in_shape).
const std::byte* elements(Machine& m, const Instruction& i, int which, Elem elem = Elem::kNone) {
  Value& v = m.slot(i.in[which]);
  if (v.tile != nullptr) return v.tile->data();
  int32_t shape[kLazyRank] = {};
  const auto& in = i.extra->in_shape;
  int64_t n = 1;
  for (size_t d = 0; d < in.size(); ++d) {
    if (d < kLazyRank) shape[d] = static_cast<int32_t>(in[d]);
    n *= in[d];
  }
  return m.dense(v, elem == Elem::kNone ? i.elem : elem, shape, static_cast<int>(in.size()), n);
}

bool lazy_ranks(const Instruction& i) { return i.rank <= kLazyRank && i.extra->in_shape.size() <= kLazyRank; }

}  // namespace

void make_range(Machine& m, const Instruction& i) {
  Affine a;
  a.base = i.extra->numbers[0];
  a.stride[0] = i.lanes > 1 ? 1 : 0;
  set_affine(m, i.out, a, 1);
}

void splat(Machine& m, const Instruction& i) { m.copy(i.out, i.in[0]); }

void unsplat(Machine& m, const Instruction& i) {
  Value& v = m.slot(i.in[0]);
  if (v.form == Form::kUniform || v.form == Form::kAffine) return m.set_uniform(i.out, v.base);
  m.set_uniform(i.out, canonical_bits(elements(m, i, 0), i.out_elem));
}

void expand_dims(Machine& m, const Instruction& i) {
  const Value& v = m.slot(i.in[0]);
  if (v.form == Form::kUniform || v.form == Form::kDense) return m.copy(i.out, i.in[0]);
  if (!lazy_ranks(i)) {
    elements(m, i, 0);
    return m.share_elements(i.out, i.in[0]);
  }
  if (v.form == Form::kAffine) {
    Affine a;
    a.base = v.base;
    for (int d = 0, s = 0; d < i.rank; ++d) a.stride[d] = d == i.axis ? 0 : v.stride[s++];
    return set_affine(m, i.out, a, i.rank);
  }
  int32_t low[kLazyRank] = {}, high[kLazyRank] = {};
  for (int d = 0, s = 0; d < i.rank; ++d) {
    low[d] = d == i.axis ? 0 : v.low[s];
    high[d] = d == i.axis ? 1 : v.high[s++];
  }
  set_box(m, i.out, low, high, i.shape.data(), i.rank);
}

void broadcast(Machine& m, const Instruction& i) {
  const Value& v = m.slot(i.in[0]);
  const auto& in = i.extra->in_shape;
  const auto& out = i.extra->out_shape;
  if (v.form == Form::kUniform || in == out) return m.copy(i.out, i.in[0]);
  if (v.form == Form::kAffine && lazy_ranks(i)) {
    Affine a = *Affine::of(v);
    for (int d = 0; d < i.rank; ++d)
      if (in[static_cast<size_t>(d)] == 1) a.stride[d] = 0;
    return set_affine(m, i.out, a, i.rank);
  }
  if (v.form == Form::kBox && lazy_ranks(i)) {
    int32_t low[kLazyRank] = {}, high[kLazyRank] = {};
    for (int d = 0; d < i.rank; ++d) {
      const bool grown = in[static_cast<size_t>(d)] == 1;
      low[d] = grown ? 0 : v.low[d];
      high[d] = grown ? i.shape[static_cast<size_t>(d)] : v.high[d];
    }
    return set_box(m, i.out, low, high, i.shape.data(), i.rank);
  }
  const std::byte* from = elements(m, i, 0);
  const int bytes = elem_bytes(i.elem);
  Tile* tile = m.pool().take(i.lanes * bytes);
  std::vector<int64_t> stride(in.size());
  int64_t step = 1;
  for (size_t d = in.size(); d-- > 0;) {
    stride[d] = in[d] == 1 ? 0 : step;
    step *= in[d];
  }
  permute_bytes(from, tile->data(), bytes, out, stride);
  m.set_dense(i.out, tile);
}

void reshape(Machine& m, const Instruction& i) {
  const Value& v = m.slot(i.in[0]);
  if (v.form == Form::kUniform || v.form == Form::kDense) return m.copy(i.out, i.in[0]);
  const auto& in = i.extra->in_shape;
  if (v.form == Form::kAffine && lazy_ranks(i)) {
    // The dimensions longer than 1 must stay, or one of them be split.
    std::vector<std::pair<int64_t, int64_t>> dims;  // size, stride
    for (size_t d = 0; d < in.size(); ++d)
      if (in[d] != 1) dims.emplace_back(in[d], v.stride[d]);
    Affine a;
    a.base = v.base;
    size_t at = dims.size();
    int64_t left = at > 0 ? dims[at - 1].first : 1, step = at > 0 ? dims[at - 1].second : 0;
    bool ok = true;
    for (int d = i.rank - 1; d >= 0 && ok; --d) {
      const int64_t size = i.shape[static_cast<size_t>(d)];
      if (size == 1) continue;
      if (left == 1) {
        if (--at == 0) {
          ok = false;
          break;
        }
        left = dims[at - 1].first;
        step = dims[at - 1].second;
      }
      ok = at > 0 && left % size == 0;
      if (!ok) break;
      a.stride[d] = step;
      step *= size;
      left /= size;
    }
    if (ok) return set_affine(m, i.out, a, i.rank);
  }
  elements(m, i, 0);
  m.share_elements(i.out, i.in[0]);
}

void trans(Machine& m, const Instruction& i) {
  const Value& v = m.slot(i.in[0]);
  const auto& order = i.extra->numbers;
  if (v.form == Form::kUniform) return m.copy(i.out, i.in[0]);
  if (lazy_ranks(i) && v.form == Form::kAffine) {
    Affine a;
    a.base = v.base;
    for (int d = 0; d < i.rank; ++d) a.stride[d] = v.stride[order[static_cast<size_t>(d)]];
    return set_affine(m, i.out, a, i.rank);
  }
  if (lazy_ranks(i) && v.form == Form::kBox) {
    int32_t low[kLazyRank] = {}, high[kLazyRank] = {};
    for (int d = 0; d < i.rank; ++d) {
      low[d] = v.low[order[static_cast<size_t>(d)]];
      high[d] = v.high[order[static_cast<size_t>(d)]];
    }
    return set_box(m, i.out, low, high, i.shape.data(), i.rank);
  }
  const std::byte* from = elements(m, i, 0);
  const auto& in = i.extra->in_shape;
  std::vector<int64_t> in_stride(in.size()), stride(in.size());
  int64_t step = 1;
  for (size_t d = in.size(); d-- > 0;) {
    in_stride[d] = step;
    step *= in[d];
  }
  for (size_t d = 0; d < in.size(); ++d) stride[d] = in_stride[static_cast<size_t>(order[d])];
  const int bytes = elem_bytes(i.elem);
  Tile* tile = m.pool().take(i.lanes * bytes);
  permute_bytes(from, tile->data(), bytes, i.extra->out_shape, stride);
  m.set_dense(i.out, tile);
}

// [.., a], [.., b] become one new innermost dimension of two.
void join(Machine& m, const Instruction& i) {
  const std::byte *a = elements(m, i, 0), *b = elements(m, i, 1);
  const auto bytes = static_cast<size_t>(elem_bytes(i.elem));
  Tile* tile = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
  std::byte* out = tile->data();
  for (int64_t k = 0; k < i.lanes / 2; ++k) {
    std::memcpy(out + 2 * static_cast<size_t>(k) * bytes, a + static_cast<size_t>(k) * bytes, bytes);
    std::memcpy(out + (2 * static_cast<size_t>(k) + 1) * bytes, b + static_cast<size_t>(k) * bytes, bytes);
  }
  m.set_dense(i.out, tile);
}

void split(Machine& m, const Instruction& i) {
  const std::byte* from = elements(m, i, 0);
  const auto bytes = static_cast<size_t>(elem_bytes(i.elem));
  for (size_t half = 0; half < 2; ++half) {
    Tile* tile = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
    for (int64_t k = 0; k < i.lanes; ++k)
      std::memcpy(tile->data() + static_cast<size_t>(k) * bytes,
                  from + (2 * static_cast<size_t>(k) + half) * bytes, bytes);
    if (i.rank > 0) {
      m.set_dense(i.extra->outputs[half], tile);
    } else {  // of two elements: scalars
      const int64_t bits = canonical_bits(tile->data(), i.elem);
      m.pool().release(tile);
      m.set_uniform(i.extra->outputs[half], bits);
    }
  }
}

// The order of the result is not defined: on a GPU each thread keeps its elements of both. Here they
// alternate, as in `join`.
void cat(Machine& m, const Instruction& i) { join(m, i); }

// Likewise: first the elements at even places, then the others.
void unordered(Machine& m, const Instruction& i) {
  const std::byte* from = elements(m, i, 0);
  const auto bytes = static_cast<size_t>(elem_bytes(i.elem));
  Tile* tile = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
  std::byte* out = tile->data();
  for (int64_t first : {0, 1})
    for (int64_t k = first; k < i.lanes; k += 2, out += bytes)
      std::memcpy(out, from + static_cast<size_t>(k) * bytes, bytes);
  m.set_dense(i.out, tile);
}

// out[.., k, ..] = source[.., index[.., k, ..], ..] along the axis; out_shape is the indices' shape.
void gather(Machine& m, const Instruction& i) {
  const std::byte* source = elements(m, i, 0);
  Value& index = m.slot(i.in[1]);
  const std::byte* indices = m.dense(index, i.extra->elems[0], i, i.lanes);
  const bool wide = elem_bytes(i.extra->elems[0]) == 8;
  const auto& in = i.extra->in_shape;
  const auto& out = i.extra->out_shape;
  const auto axis = static_cast<size_t>(i.axis);
  const auto bytes = static_cast<size_t>(elem_bytes(i.elem));
  Tile* tile = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
  std::vector<int64_t> stride(in.size());
  int64_t step = 1;
  for (size_t d = in.size(); d-- > 0;) {
    stride[d] = step;
    step *= in[d];
  }
  std::array<int64_t, kMaxRank> at{};
  int64_t base = 0;  // of the source, the axis left out
  for (int64_t k = 0; k < i.lanes; ++k) {
    const int64_t which =
        wide ? reinterpret_cast<const int64_t*>(indices)[k] : reinterpret_cast<const int32_t*>(indices)[k];
    std::byte* const to = tile->data() + static_cast<size_t>(k) * bytes;
    if (which < 0 || which >= in[axis])  // undefined: a NaN, or a number that no code means
      std::memset(to, is_float(i.elem) ? 0xff : 0x6b, bytes);
    else
      std::memcpy(to, source + static_cast<size_t>(base + which * stride[axis]) * bytes, bytes);
    for (size_t d = out.size(); d-- > 0;) {
      if (d != axis) base += stride[d];
      if (++at[d] < out[d]) break;
      if (d != axis) base -= stride[d] * out[d];
      at[d] = 0;
    }
  }
  m.set_dense(i.out, tile);
}

void histogram(Machine& m, const Instruction& i) {
  const std::byte* values = elements(m, i, 0);
  int64_t n = 1;
  for (int64_t d : i.extra->in_shape) n *= d;
  const uint8_t* mask = nullptr;
  if (i.flags & kHasMask) mask = reinterpret_cast<const uint8_t*>(elements(m, i, 1, Elem::kI1));
  Tile* tile = m.pool().take(i.lanes * elem_bytes(i.out_elem));
  std::memset(tile->data(), 0, static_cast<size_t>(i.lanes * elem_bytes(i.out_elem)));
  for (int64_t k = 0; k < n; ++k) {
    if (mask != nullptr && mask[k] == 0) continue;
    // A GPU looks at as many bits as the number of bins has: what is out of range is counted as well.
    const int64_t bin = canonical_bits(values + k * elem_bytes(i.elem), i.elem) & (i.lanes - 1);
    if (i.out_elem == Elem::kI64)
      ++reinterpret_cast<int64_t*>(tile->data())[bin];
    else
      ++reinterpret_cast<int32_t*>(tile->data())[bin];
  }
  m.set_dense(i.out, tile);
}

}  // namespace nereid::ttir::handlers
