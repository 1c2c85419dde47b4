// A layer's elementwise operators, replaceable by something faster than PyTorch's operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "nereid/lm/decoder/attention.h"

namespace nereid::lm {

// Cosines and sines of every token's angles, times rope_factor.
struct Rotation {
  at::Tensor cosines, sines;  // [tokens, 1, head_dim / 2], float32
};

struct Normed {
  at::Tensor sum, normed;
};

// Differentiable, where gradients are on.
class Operators {
 public:
  virtual ~Operators() = default;
  // Attention over packed documents. joined: [tokens, heads + 2 * key_value_heads, head_dim], queries, keys
  // and values as projected: heads of queries and keys get their RMS norms with weights [head_dim]
  // (undefined: the model has none), then each pair of dimensions (i, i + head_dim / 2) is turned by its
  // token's angle. The result is [tokens, heads, head_dim].
  virtual at::Tensor attend(const at::Tensor& joined, const at::Tensor& query_norm,
                            const at::Tensor& key_norm, const Rotation& rotation,
                            const Documents& documents) = 0;
  // silu(gate) * up. joined: [tokens, 2 * intermediate], gate first; the result is [tokens, intermediate].
  virtual at::Tensor gated(const at::Tensor& joined) = 0;
  // residual + added, and its RMS norm with a weight [hidden]; `added` undefined: residual itself, and its.
  // All [tokens, hidden].
  virtual Normed add_and_norm(const at::Tensor& residual, const at::Tensor& added,
                              const at::Tensor& weight) = 0;
  // Without gradients of its own. log softmax(logits)[target] of each row, float32; the logits [rows,
  // vocabulary] become its gradient times `weights` (float32).
  virtual at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& targets,
                                  const at::Tensor& weights) = 0;
};

}  // namespace nereid::lm
