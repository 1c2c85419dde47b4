// What a decoder computes, on a CPU: plain loops for its vector units, without libtorch.
//
// libtorch's operators cost microseconds each, and its threads wait for each other by spinning; a small
// model's token is 2 ms of reading weights. Numbers are float32, weights float32 or bfloat16 as stored.
//
// A row's results do not depend on how many rows are computed with it: every sum of products is added up in
// the order of one row alone. So what is drawn for a sequence does not depend on the batch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nereid::lm {

// Numbers in float32 or in bfloat16 (the upper half of a float32).
struct HostNumbers {
  const void* data = nullptr;  // null: there are none
  bool bfloat16 = false;

  HostNumbers from(size_t offset) const {
    return {static_cast<const char*>(data) + offset * (bfloat16 ? 2 : 4), bfloat16};
  }
};

// out[r * stride + c] = sum over k of x[r * depth + k] * weights[c * depth + k], for `rows` and `columns`.
void host_products(const float* x, size_t rows, size_t depth, HostNumbers weights, size_t columns, float* out,
                   size_t stride);

// to[i] = x[i] / sqrt(mean of x's squares + epsilon) * weights[i]. In place where they are the same.
void host_norm(const float* x, size_t size, HostNumbers weights, float epsilon, float* to);

// to[i] = from[i].
void host_read(HostNumbers from, size_t size, float* to);

// to[i] += x[i].
void host_add(const float* x, size_t size, float* to);

// to[i] = silu(gate[i]) * up[i].
void host_gate(const float* gate, const float* up, size_t size, float* to);

// The rotation of each pair (i, i + half) of x by an angle's cosine and sine, in place. x: [2 * half].
void host_rotate(float* x, const float* cosines, const float* sines, size_t half);

// Attention of some heads' queries of one token over the `keys` (at least one) keys and values that they
// share, which are in blocks: those of key t at base[blocks[t / block_size] * block_stride + t % block_size *
// stride], `dim` numbers each. queries, out: [heads, dim]. `scores` has room for 4 * `keys` numbers.
struct HostBlocks {
  const float* base = nullptr;
  const int32_t* blocks = nullptr;
  size_t block_size = 0, block_stride = 0, stride = 0;
};
void host_attend(const float* queries, size_t heads, size_t dim, size_t keys, const HostBlocks& key,
                 const HostBlocks& value, float scale, float* scores, float* out);

}  // namespace nereid::lm
