// A decoder whose parameters are spread over ranks: a layer is put together where it is computed, and let go.
//
// Rank r keeps range [borders[r], borders[r + 1]) of the flat buffer (the same that its masters and optimizer
// state have). A micro-batch goes through embedding, layers, norm and head; each is copied to all ranks from
// who owns it, and its gradient is summed to its owners in float32 as soon as it is there. Of activations
// each layer's input is kept, and the layer is computed again in the backward pass. So a rank holds its
// share, and the largest part whole: a layer, or embedding or head, with its gradient.
#pragma once

#include <functional>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/train/data/batch.h"
#include "nereid/train/ranks/ranks.h"

namespace nereid::train {

class ShardedModel {
 public:
  // Of whole weights, the same on every rank; only this rank's range is kept.
  ShardedModel(const lm::Weights& weights, Ranks& ranks, std::vector<int64_t> borders);

  // A loss of the last hidden states [tokens, hidden] and the head [vocab, hidden].
  using Loss = std::function<at::Tensor(const at::Tensor& hidden, const at::Tensor& head)>;
  // All ranks call these together, each with a batch of its own. The loss; its gradient is added to
  // `gradient`, of the own range, float32.
  Result<at::Tensor> learn(const Batch& batch, const Loss& loss, const at::Tensor& gradient);
  Result<at::Tensor> look(const Batch& batch, const Loss& loss);  // without a gradient

  // This rank's range, in the weights' type.
  const at::Tensor& own() const { return own_; }
  // Everybody's: rank 0's `flat` [elements], on the host, becomes the whole buffer. Others hand in none.
  Status copy_whole(const at::Tensor& flat);

 private:
  struct Passage;
  Result<Passage> forward(const Batch& batch);
  int64_t begin() const { return borders_[static_cast<size_t>(ranks_->rank())]; }
  // Elements [offset, offset + part.numel()) of the flat buffer: to all, into `part`, ...
  Status fetch(int64_t offset, const at::Tensor& part);
  Result<at::Tensor> fetch(const lm::Parameter& parameter);
  Status fetch_layer(int64_t layer);
  // ... or from all, added to the own range's gradient.
  Status reduce_to_owner(int64_t offset, const at::Tensor& part, const at::Tensor& gradient);

  Ranks* ranks_;
  std::vector<int64_t> borders_;
  lm::ParameterLayout layout_;
  lm::Config config_;
  at::Tensor own_;
  // One layer, as a model of its own with a vocabulary of one.
  lm::Weights stage_;
  at::Tensor stage_layer_, stage_gradient_;  // flat; gradients of the same places
  std::vector<int64_t> layer_offsets_;
  const lm::Parameter* embedding_ = nullptr;
  const lm::Parameter* norm_ = nullptr;
  const lm::Parameter* head_ = nullptr;  // the embedding where they are tied
};

}  // namespace nereid::train
