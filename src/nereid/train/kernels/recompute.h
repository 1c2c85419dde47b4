// The decoder's forward for training, with or without keeping what its layers compute.
#pragma once

#include <memory>

#include "nereid/lm/decoder/decoder.h"

namespace nereid::train {

// As lm::hidden_states. With `recompute` only each layer's input is kept, and the backward pass computes
// the layer again: the same operations on the same numbers, so the same gradients. `weights` must outlive the
// backward pass, which adds the layers' gradients to its parameters itself.
at::Tensor training_hidden_states(const lm::Weights& weights, const at::Tensor& tokens,
                                  const at::Tensor& positions, std::shared_ptr<lm::Attention> attention,
                                  bool recompute);

}  // namespace nereid::train
