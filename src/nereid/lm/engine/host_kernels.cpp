#include "nereid/lm/engine/host_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)  // the baseline, AVX2 and AVX-512 are enough
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nereid/lm/engine/host_kernels.cpp"
#include <hwy/foreach_target.h>
// It comes first.
#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nereid::lm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V load(const float* at) { return hn::LoadU(D(), at); }
HWY_INLINE V load(const uint16_t* at) {
  const hn::Rebind<uint16_t, D> half;
  const hn::Rebind<uint32_t, D> whole;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, at))));
}
HWY_INLINE float number(float value) { return value; }
HWY_INLINE float number(uint16_t bits) {
  const uint32_t whole = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &whole, sizeof value);
  return value;
}
HWY_INLINE float sum(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }

// A tile of R rows by C columns. Each sum has one accumulator, and so the same order in every tile.
template <size_t R, size_t C, class W>
HWY_INLINE void tile(const float* x, size_t depth, const W* weights, float* out, size_t stride) {
  const size_t lanes = hn::Lanes(D()), whole = depth / lanes * lanes;
  V sums[R][C];
  for (size_t r = 0; r < R; ++r)
    for (size_t c = 0; c < C; ++c) sums[r][c] = hn::Zero(D());
  for (size_t k = 0; k < whole; k += lanes) {
    V own[R];
    for (size_t r = 0; r < R; ++r) own[r] = load(x + r * depth + k);
    for (size_t c = 0; c < C; ++c) {
      const V weight = load(weights + c * depth + k);
      for (size_t r = 0; r < R; ++r) sums[r][c] = hn::MulAdd(own[r], weight, sums[r][c]);
    }
  }
  for (size_t r = 0; r < R; ++r)
    for (size_t c = 0; c < C; ++c) {
      float total = sum(sums[r][c]);
      for (size_t k = whole; k < depth; ++k) total += x[r * depth + k] * number(weights[c * depth + k]);
      out[r * stride + c] = total;
    }
}

template <size_t R, size_t C, class W>
void strip(const float* x, size_t depth, const W* weights, size_t columns, float* out, size_t stride) {
  size_t c = 0;
  for (; c + C <= columns; c += C) tile<R, C>(x, depth, weights + c * depth, out + c, stride);
  for (; c < columns; ++c) tile<R, 1>(x, depth, weights + c * depth, out + c, stride);
}

// Columns in pieces whose weights stay in the second-level cache while all rows go over them.
template <class W>
void products(const float* x, size_t rows, size_t depth, const W* weights, size_t columns, float* out,
              size_t stride) {
  constexpr size_t kRows = HWY_TARGET == HWY_AVX3 ? 4 : 2, kPiece = 64;
  if (rows < kRows) {
    for (size_t r = 0; r < rows; ++r)
      strip<1, 8>(x + r * depth, depth, weights, columns, out + r * stride, stride);
    return;
  }
  for (size_t c = 0; c < columns; c += kPiece) {
    const size_t piece = std::min(kPiece, columns - c);
    const W* own = weights + c * depth;
    size_t r = 0;
    for (; r + kRows <= rows; r += kRows)
      strip<kRows, 4>(x + r * depth, depth, own, piece, out + r * stride + c, stride);
    for (; r < rows; ++r) strip<1, 8>(x + r * depth, depth, own, piece, out + r * stride + c, stride);
  }
}

void Products(const float* x, size_t rows, size_t depth, HostNumbers weights, size_t columns, float* out,
              size_t stride) {
  if (weights.bfloat16)
    products(x, rows, depth, static_cast<const uint16_t*>(weights.data), columns, out, stride);
  else
    products(x, rows, depth, static_cast<const float*>(weights.data), columns, out, stride);
}

HWY_INLINE float dot(const float* a, const float* b, size_t size) {
  const size_t lanes = hn::Lanes(D());
  V total = hn::Zero(D());
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) total = hn::MulAdd(load(a + i), load(b + i), total);
  float rest = sum(total);
  for (; i < size; ++i) rest += a[i] * b[i];
  return rest;
}

template <class W>
void norm(const float* x, size_t size, const W* weights, float epsilon, float* to) {
  const float scale = 1 / std::sqrt(dot(x, x, size) / static_cast<float>(size) + epsilon);
  const size_t lanes = hn::Lanes(D());
  const V scales = hn::Set(D(), scale);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    hn::StoreU(hn::Mul(hn::Mul(load(x + i), scales), load(weights + i)), D(), to + i);
  for (; i < size; ++i) to[i] = x[i] * scale * number(weights[i]);
}

void Norm(const float* x, size_t size, HostNumbers weights, float epsilon, float* to) {
  if (weights.bfloat16)
    norm(x, size, static_cast<const uint16_t*>(weights.data), epsilon, to);
  else
    norm(x, size, static_cast<const float*>(weights.data), epsilon, to);
}

void Read(HostNumbers from, size_t size, float* to) {
  if (!from.bfloat16) {
    std::memcpy(to, from.data, size * sizeof(float));
    return;
  }
  const auto* bits = static_cast<const uint16_t*>(from.data);
  for (size_t i = 0; i < size; ++i) to[i] = number(bits[i]);
}

void Add(const float* x, size_t size, float* to) {
  for (size_t i = 0; i < size; ++i) to[i] += x[i];
}

void Gate(const float* gate, const float* up, size_t size, float* to) {
  const size_t lanes = hn::Lanes(D());
  const V one = hn::Set(D(), 1.0f);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const V g = load(gate + i);
    const V silu = hn::Div(g, hn::Add(one, hn::Exp(D(), hn::Neg(g))));
    hn::StoreU(hn::Mul(silu, load(up + i)), D(), to + i);
  }
  for (; i < size; ++i) to[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

void Rotate(float* x, const float* cosines, const float* sines, size_t half) {
  for (size_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    x[i] = a * cosines[i] - b * sines[i];
    x[i + half] = b * cosines[i] + a * sines[i];
  }
}

// Calls f(t, what is there) for each of the keys in order, a block at a time. A batch of sequences is more
// than a cache holds, so that time is what memory takes to answer: the next block's numbers are prefetched
// while this one's are read.
template <class F>
HWY_INLINE void each_in(const HostBlocks& in, size_t keys, size_t dim, F f) {
  constexpr size_t kLine = 64 / sizeof(float);
  for (size_t first = 0, block = 0; first < keys; first += in.block_size, ++block) {
    const float* from = in.base + static_cast<size_t>(in.blocks[block]) * in.block_stride;
    const size_t end = std::min(keys, first + in.block_size);
    const float* next =
        end < keys ? in.base + static_cast<size_t>(in.blocks[block + 1]) * in.block_stride : from;
    for (size_t t = first; t < end; ++t, from += in.stride, next += in.stride) {
      for (size_t i = 0; i < dim; i += kLine) hwy::Prefetch(next + i);
      f(t, from);
    }
  }
}

// scores[h * keys + t] = query h times key t. A key is read once for all H.
template <size_t H>
HWY_INLINE void score(const float* queries, size_t dim, size_t keys, const HostBlocks& key, float scale,
                      float* scores) {
  const size_t lanes = hn::Lanes(D()), whole = dim / lanes * lanes;
  each_in(key, keys, dim, [&](size_t t, const float* from) {
    V sums[H];
    for (size_t h = 0; h < H; ++h) sums[h] = hn::Zero(D());
    for (size_t i = 0; i < whole; i += lanes) {
      const V own = load(from + i);
      for (size_t h = 0; h < H; ++h) sums[h] = hn::MulAdd(load(queries + h * dim + i), own, sums[h]);
    }
    for (size_t h = 0; h < H; ++h) {
      float total = sum(sums[h]);
      for (size_t i = whole; i < dim; ++i) total += queries[h * dim + i] * from[i];
      scores[h * keys + t] = total * scale;
    }
  });
}

// scores[t] = exp(scores[t] - the largest); returns their sum.
HWY_INLINE float weigh(float* scores, size_t keys) {
  const size_t lanes = hn::Lanes(D());
  const V shift = hn::Set(D(), *std::max_element(scores, scores + keys));
  V sums = hn::Zero(D());
  size_t t = 0;
  for (; t + lanes <= keys; t += lanes) {
    const V weight = hn::Exp(D(), hn::Sub(load(scores + t), shift));
    hn::StoreU(weight, D(), scores + t);
    sums = hn::Add(sums, weight);
  }
  float total = sum(sums);
  for (; t < keys; ++t) total += scores[t] = std::exp(scores[t] - hn::GetLane(shift));
  return total;
}

// out[h * dim + i] = sum over t of scores[h * keys + t] * value t's i, for C vectors of i; what is added up
// stays in registers.
template <size_t H, size_t C>
HWY_INLINE void mix(const float* scores, size_t dim, size_t keys, const HostBlocks& value, size_t i,
                    float* out) {
  const size_t lanes = hn::Lanes(D());
  V sums[H][C];
  for (size_t h = 0; h < H; ++h)
    for (size_t c = 0; c < C; ++c) sums[h][c] = hn::Zero(D());
  each_in(value, keys, i == 0 ? dim : 0, [&](size_t t, const float* from) {
    V own[C];
    for (size_t c = 0; c < C; ++c) own[c] = load(from + i + c * lanes);
    for (size_t h = 0; h < H; ++h) {
      const V weight = hn::Set(D(), scores[h * keys + t]);
      for (size_t c = 0; c < C; ++c) sums[h][c] = hn::MulAdd(weight, own[c], sums[h][c]);
    }
  });
  for (size_t h = 0; h < H; ++h)
    for (size_t c = 0; c < C; ++c) hn::StoreU(sums[h][c], D(), out + h * dim + i + c * lanes);
}

template <size_t H>
void attend(const float* queries, size_t dim, size_t keys, const HostBlocks& key, const HostBlocks& value,
            float scale, float* scores, float* out) {
  constexpr size_t kColumns = HWY_TARGET == HWY_AVX3 ? 4 : 2;
  const size_t lanes = hn::Lanes(D());
  score<H>(queries, dim, keys, key, scale, scores);
  float totals[H];
  for (size_t h = 0; h < H; ++h) totals[h] = weigh(scores + h * keys, keys);
  size_t i = 0;
  for (; i + kColumns * lanes <= dim; i += kColumns * lanes)
    mix<H, kColumns>(scores, dim, keys, value, i, out);
  for (; i + lanes <= dim; i += lanes) mix<H, 1>(scores, dim, keys, value, i, out);
  if (i < dim) {
    for (size_t h = 0; h < H; ++h) std::fill(out + h * dim + i, out + (h + 1) * dim, 0.0f);
    each_in(value, keys, 0, [&](size_t t, const float* from) {
      for (size_t h = 0; h < H; ++h)
        for (size_t rest = i; rest < dim; ++rest) out[h * dim + rest] += scores[h * keys + t] * from[rest];
    });
  }
  for (size_t h = 0; h < H; ++h)
    for (size_t each = 0; each < dim; ++each) out[h * dim + each] /= totals[h];
}

void Attend(const float* queries, size_t heads, size_t dim, size_t keys, const HostBlocks& key,
            const HostBlocks& value, float scale, float* scores, float* out) {
  size_t h = 0;
  for (; h + 4 <= heads; h += 4)
    attend<4>(queries + h * dim, dim, keys, key, value, scale, scores, out + h * dim);
  for (; h < heads; ++h) attend<1>(queries + h * dim, dim, keys, key, value, scale, scores, out + h * dim);
}

}  // namespace HWY_NAMESPACE
}  // namespace nereid::lm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nereid::lm {

HWY_EXPORT(Products);
HWY_EXPORT(Norm);
HWY_EXPORT(Read);
HWY_EXPORT(Add);
HWY_EXPORT(Gate);
HWY_EXPORT(Rotate);
HWY_EXPORT(Attend);

void host_products(const float* x, size_t rows, size_t depth, HostNumbers weights, size_t columns, float* out,
                   size_t stride) {
  HWY_DYNAMIC_DISPATCH(Products)(x, rows, depth, weights, columns, out, stride);
}
void host_norm(const float* x, size_t size, HostNumbers weights, float epsilon, float* to) {
  HWY_DYNAMIC_DISPATCH(Norm)(x, size, weights, epsilon, to);
}
void host_read(HostNumbers from, size_t size, float* to) { HWY_DYNAMIC_DISPATCH(Read)(from, size, to); }
void host_add(const float* x, size_t size, float* to) { HWY_DYNAMIC_DISPATCH(Add)(x, size, to); }
void host_gate(const float* gate, const float* up, size_t size, float* to) {
  HWY_DYNAMIC_DISPATCH(Gate)(gate, up, size, to);
}
void host_rotate(float* x, const float* cosines, const float* sines, size_t half) {
  HWY_DYNAMIC_DISPATCH(Rotate)(x, cosines, sines, half);
}
void host_attend(const float* queries, size_t heads, size_t dim, size_t keys, const HostBlocks& key,
                 const HostBlocks& value, float scale, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(Attend)(queries, heads, dim, keys, key, value, scale, scores, out);
}

}  // namespace nereid::lm
#endif
