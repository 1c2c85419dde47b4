// A model, its gradient and its optimizer: what one step does to them.
#pragma once

#include <functional>

#include "nereid/model/decoder/decoder.h"
#include "nereid/train/batch.h"
#include "nereid/train/run_file.h"
#include "nereid/train/torch/optimizer.h"
#include "nereid/train/torch/ranks.h"

namespace nereid::train {

// Weights are whole on every rank, in the run's precision. Float32 masters and the optimizer's state are
// sharded (ZeRO-1, Rajbhandari et al., 2020): rank r owns one range of the flat buffer. Gradients are
// gathered over micro-batches in float32.
class Trainer {
 public:
  // `weights` are the model to begin with, in the run's precision, the same on every rank.
  Trainer(const RunFile& run, model::Weights weights, Ranks& ranks);

  struct Figures {
    double loss = 0;           // mean over the targets of all ranks
    double gradient_norm = 0;  // before it is clipped
  };
  // Forward and backward of all batches; nothing changes but gradients. The numbers may be no finite ones.
  Result<Figures> gather(const StepData& step);
  // Log-probabilities and entropies of a batch's targets, [tokens] on the host, 0 where there is none;
  // without gradients.
  struct Scores {
    at::Tensor log_probabilities, entropies;
  };
  Scores score(const Batch& batch) const;
  // As `gather`, where the loss's gradient by the log-probabilities of batch b's targets is gradients[b],
  // [tokens] on the host. The loss of the figures is 0.
  Result<Figures> gather_from(const std::vector<Batch>& batches, const std::vector<at::Tensor>& gradients);
  // Clips what was gathered, and makes a step at that share of the peak learning rate.
  Status apply(double gradient_norm, double share);

  // Sum of losses over the targets of these batches, without gradients; of this rank.
  double loss_sum(const std::vector<Batch>& batches) const;

  const model::Weights& weights() const { return weights_; }
  // Of this rank's range [begin, end).
  int64_t begin() const { return borders_[static_cast<size_t>(ranks_->rank())]; }
  int64_t end() const { return borders_[static_cast<size_t>(ranks_->rank()) + 1]; }
  const at::Tensor& master() const { return master_; }
  Optimizer& optimizer() { return optimizer_; }
  // After master and optimizer were set to what a checkpoint holds: the weights follow.
  Status spread_master();

 private:
  at::Tensor hidden_of(const Batch& batch) const;
  at::Tensor loss_of(const Batch& batch, double scale) const;
  // What each of `count` micro-batches adds, and the sums over ranks of the losses and of the gradient.
  Result<Figures> gather_all(size_t count, const std::function<at::Tensor(size_t)>& backward);

  RunFile run_;
  model::Weights weights_;
  Ranks* ranks_;
  std::vector<int64_t> borders_;
  at::Tensor gradient_;  // flat, the weights' type: what the backward pass adds to
  at::Tensor gathered_;  // flat, float32: the sum over micro-batches; gradient_ itself where that is float32
  at::Tensor master_;    // of the range, float32; the weights themselves where those are
  Optimizer optimizer_;
};

}  // namespace nereid::train
