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
  // silu(gate) * up. All [tokens, intermediate].
  virtual at::Tensor gated(const at::Tensor& gate, const at::Tensor& up) = 0;
};

}  // namespace nereid::model
