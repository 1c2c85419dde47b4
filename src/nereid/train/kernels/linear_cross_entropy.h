// The head and what is made of its logits, without ever holding all of them: a chunk of rows at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include "nereid/lm/decoder/operators.h"

namespace nereid::train {

// As many rows as make 2^27 logits, or 2^30 that are worked on in place, in 64s: what a chunk takes of the
// targets then begins at 16 bytes, as kernels assume.
int64_t micro_batch_size(int64_t vocab, bool in_place = false);

// scale * sum of -log softmax(hidden weight^T)[target] over the rows whose target is not kNoTarget; float32,
// no dimensions. hidden: [tokens, hidden_size]; weight: [vocab, hidden_size], of the same type; targets:
// [tokens], int64, on hidden's device, which is waited for, or on the host. Gradients are computed along with
// the value, so the backward pass costs nothing: at no time is there more of the logits than one chunk.
// `chunk` 0: micro_batch_size. `operators`: who makes losses and gradients of the logits; null: PyTorch's
// operators.
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                double scale, int64_t chunk = 0, lm::Operators* operators = nullptr);

struct TokenScores {
  at::Tensor log_probabilities;  // [tokens], float32, of the targets; 0 where there is none; differentiable
  at::Tensor entropies;  // [tokens], float32, of the whole distribution; 0 likewise; without a gradient
};
// The same for losses that want each token's log-probability. The backward pass computes each chunk's logits
// again.
TokenScores score_tokens(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                         int64_t chunk = 0);

}  // namespace nereid::train
