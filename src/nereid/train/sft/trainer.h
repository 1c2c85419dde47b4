// A model, its gradient and its optimizer: what one step does to them.
#pragma once

#include <functional>
#include <optional>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/train/data/batch.h"
#include "nereid/train/kernels/host_copies.h"
#include "nereid/train/kernels/linear_cross_entropy.h"
#include "nereid/train/kernels/optimizer.h"
#include "nereid/train/ranks/ranks.h"
#include "nereid/train/ranks/sharded_model.h"
#include "nereid/train/run_file.h"

namespace nereid::train {

// What a checkpoint keeps, on the host.
struct HostState {
  at::Tensor master, first, second;  // of the rank's range, float32
  at::Tensor flat;                   // the weights, in their type; undefined where they are not wanted
};

// What is learnt from besides: `weight` times the mean loss over the targets of all ranks.
struct Supervised {
  StepData data{};  // may be empty
  double weight = 0;
};

// Weights are whole on every rank, in the run's precision, or sharded too where the run file has it so
// (sharded_model.h; then all ranks go through forwards together). Float32 masters and the optimizer's state
// are sharded (ZeRO-1, Rajbhandari et al., 2020): rank r owns one range of the flat buffer; where the run
// file has it so they are in host memory, and come to the device piece by piece. Gradients are accumulated
// over micro-batches in float32.
class Trainer {
 public:
  // `weights` are the model to begin with, in the run's precision, the same on every rank.
  Trainer(const RunFile& run, lm::Weights weights, Ranks& ranks);

  struct Figures {
    double loss = 0;           // mean over the targets of all ranks
    double gradient_norm = 0;  // before it is clipped
  };
  // Forward and backward of all batches; nothing changes but gradients. The numbers may be no finite ones.
  // `stop` is asked between batches: where it is true, an Error of Blame::kInterrupted. With several ranks it
  // has to be empty, for they go through batches together.
  Result<Figures> gather(const StepData& step, const std::function<bool()>& stop = {});
  // Log-probabilities and entropies of a batch's targets, [tokens] on the host, 0 where there is none;
  // without gradients. Of whole weights alone, and so is `gather_from`.
  struct Scores {
    at::Tensor log_probabilities, entropies;
  };
  Scores score(const Batch& batch) const;
  // As `gather`, where the loss's gradient by the log-probabilities of batch b's targets is gradients[b],
  // [tokens] on the host. The loss of the figures is that of `besides`, weighted.
  Result<Figures> gather_from(const std::vector<Batch>& batches, const std::vector<at::Tensor>& gradients,
                              const Supervised& besides = {});
  // The same where that gradient follows from the batch's own scores: one forward for both.
  using GradientOf = std::function<at::Tensor(size_t batch, const Scores& scores)>;
  Result<Figures> gather_from(const std::vector<Batch>& batches, const GradientOf& gradient_of,
                              const Supervised& besides = {});
  // Clips the accumulated gradient, and makes a step at that share of the peak learning rate.
  Status apply(double gradient_norm, double share);

  // Sum of losses over the targets of these batches, without gradients; of this rank.
  Result<double> loss_sum(const std::vector<Batch>& batches);

  // Where weights are sharded there are no tensors, but configuration and layout.
  const lm::Weights& weights() const { return weights_; }
  // Begins to copy to the host what a checkpoint keeps of this rank, and the weights for a caller that asks
  // for them (rank 0 alone, where they are sharded); what may go on meanwhile does, and `apply` waits. All
  // ranks call it.
  Status copy_state(HostState& to, bool with_weights);
  void wait_for_copies() const { copies_.wait(); }  // any thread
  // Of this rank's range [begin, end).
  int64_t begin() const { return borders_[static_cast<size_t>(ranks_->rank())]; }
  int64_t end() const { return borders_[static_cast<size_t>(ranks_->rank()) + 1]; }
  const at::Tensor& master() const { return master_; }
  Optimizer& optimizer() { return optimizer_; }
  // After master and optimizer were set to what a checkpoint holds: the weights follow.
  Status spread_master();

 private:
  at::TensorOptions state_options() const;  // of masters and moments
  // Parts of the range that are small enough to be copied between host and device at once.
  void for_pieces(const std::function<void(const at::Tensor& master, const at::Tensor& own)>& body);
  at::Tensor own_gradient() const;
  at::Tensor own_weights() const;
  at::Tensor hidden_of(const Batch& batch) const;
  at::Tensor loss_of(const Batch& batch, double scale) const;
  at::Tensor learn(const Batch& batch, double scale);  // adds its gradient; the scaled loss
  ShardedModel::Loss sharded_loss(const Batch& batch, double scale) const;
  Result<Figures> figures_of(const at::Tensor& loss);
  Result<Figures> gather_scored(
      const std::vector<Batch>& batches,
      const std::function<at::Tensor(size_t batch, const TokenScores& scores)>& gradient_of,
      const Supervised& besides);
  // What each of `count` micro-batches adds, and the sums over ranks of the losses and of the gradient.
  Result<Figures> gather_all(size_t count, const std::function<at::Tensor(size_t)>& backward,
                             const std::function<bool()>& stop = {});

  RunFile run_;
  lm::Weights weights_;
  Ranks* ranks_;
  at::Device device_;
  std::vector<int64_t> borders_;
  std::optional<ShardedModel> sharded_;
  HostCopies copies_{device_};
  at::Tensor gradient_;  // flat, the weights' type: what the backward pass adds to
  // Float32, the sum over micro-batches: flat (gradient_ itself where that is float32), or the own range of
  // sharded weights.
  at::Tensor accumulated_;
  at::Tensor master_;  // of the range, float32; the weights themselves where those are
  Optimizer optimizer_;
};

}  // namespace nereid::train
