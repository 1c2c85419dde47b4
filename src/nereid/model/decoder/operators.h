// What a layer computes element by element, for whoever has something faster than PyTorch's operators.
#pragma once

#include <ATen/core/Tensor.h>

namespace nereid::model {

// Cosines and sines of every token's angles, times rope_factor.
struct Rotation {
  at::Tensor cosines, sines;  // [tokens, 1, head_dim / 2], float32
};

// Differentiable, where gradients are on.
class Operators {
 public:
  virtual ~Operators() = default;
  // Each pair of dimensions (i, i + head_dim / 2) turned by its token's angle. x, and the result: [tokens, heads, head_dim].
  virtual at::Tensor rotate(const at::Tensor& x, const Rotation& rotation) = 0;
  // The RMS norm of each head with a weight [head_dim], then `rotate`.
  virtual at::Tensor norm_rotate(const at::Tensor& x, const at::Tensor& weight, const Rotation& rotation) = 0;
  // silu(gate) * up. All [tokens, intermediate].
  virtual at::Tensor gated(const at::Tensor& gate, const at::Tensor& up) = 0;
  // Without gradients of its own. log softmax(logits)[target] of each row, float32; the logits [rows, vocabulary] become its gradient times `weights` (float32).
  virtual at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights) = 0;
};

}  // namespace nereid::model
