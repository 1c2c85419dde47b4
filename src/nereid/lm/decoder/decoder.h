// The decoder's forward, for training (with gradients, over packed documents) and for inference (over paged
// keys and values) alike: which, is a matter of the Attention that is handed in.
#pragma once

#include <ATen/core/Tensor.h>

#include "nereid/lm/decoder/attention.h"
#include "nereid/lm/decoder/weights.h"

namespace nereid::lm {

Rotation rotation_at(const Weights& weights,
                     const at::Tensor& positions);  // positions: [tokens], int64, from 0 in each sequence

// One layer, residual stream to residual stream. hidden: [tokens, hidden]. Activation recomputation calls
// this again in the backward.
at::Tensor layer_forward(const Weights& weights, int64_t layer, const at::Tensor& hidden,
                         const Rotation& rotation, Attention& attention);

// All layers and the last norm. tokens, positions: [tokens], int64. The result is [tokens, hidden].
at::Tensor hidden_states(const Weights& weights, const at::Tensor& tokens, const at::Tensor& positions,
                         Attention& attention);

// hidden: [tokens, hidden], after the last norm. The result is [tokens, vocab], in the weights' type.
at::Tensor logits_of(const Weights& weights, const at::Tensor& hidden);

}  // namespace nereid::lm
