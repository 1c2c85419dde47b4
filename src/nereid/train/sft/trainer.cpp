#include "nereid/train/sft/trainer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "nereid/lm/decoder/device.h"
#include "nereid/train/kernels/linear_cross_entropy.h"
#include "nereid/train/kernels/recompute.h"

namespace nereid::train {
namespace {

std::vector<int64_t> borders_of(const lm::ParameterLayout& layout, OptimizerSettings::Kind kind,
                                int64_t ranks) {
  std::vector<int64_t> borders;
  for (int64_t rank = 0; rank <= ranks; ++rank)
    borders.push_back(range_border(layout, kind, layout.elements * rank / ranks));
  return borders;
}

at::Tensor on_device(const std::vector<int32_t>& numbers, at::Device device) {
  return lm::sent_to(numbers, device).to(at::kLong);
}

// On the host, where which rows have one is found without waiting for the device.
at::Tensor targets_of(const Batch& batch) {
  return at::from_blob(const_cast<int32_t*>(batch.targets.data()), {std::ssize(batch.targets)}, at::kInt)
      .to(at::kLong);
}

}  // namespace

Trainer::Trainer(const RunFile& run, lm::Weights weights, Ranks& ranks)
    : run_(run),
      weights_(std::move(weights)),
      ranks_(&ranks),
      device_(weights_.flat.device()),
      borders_(borders_of(weights_.layout, run.optimizer.kind, ranks.count())),
      optimizer_(weights_.layout, run.optimizer, begin(), end(), state_options()) {
  const c10::NoGradGuard no_gradients;
  if (run.machine.shard_parameters) {
    sharded_.emplace(weights_, ranks, borders_);
    weights_.flat = weights_.embedding = weights_.norm = weights_.head = at::Tensor();
    weights_.parameters.clear(), weights_.layers.clear();
    master_ = sharded_->own().to(at::kFloat);
    accumulated_ = at::zeros_like(master_);
    return;
  }
  gradient_ = lm::require_gradients(weights_);
  accumulated_ = gradient_.scalar_type() == at::kFloat
                     ? gradient_
                     : at::zeros(gradient_.sizes(), gradient_.options().dtype(at::kFloat));
  if (!run.machine.offload_optimizer) {
    master_ = weights_.flat.slice(0, begin(), end()).to(at::kFloat);
    return;
  }
  master_ = at::empty({end() - begin()}, state_options());
  for_pieces([&](const at::Tensor& master, const at::Tensor& own) { master.copy_(own.to(at::kFloat)); });
}

at::TensorOptions Trainer::state_options() const {
  const auto options = at::TensorOptions(device_).dtype(at::kFloat);
  return run_.machine.offload_optimizer ? options.device(at::kCPU).pinned_memory(device_.is_cuda()) : options;
}

void Trainer::for_pieces(const std::function<void(const at::Tensor& master, const at::Tensor& own)>& body) {
  constexpr int64_t kMost = int64_t{1} << 26;
  for (int64_t at = 0; at < end() - begin(); at += kMost) {
    const int64_t elements = std::min(kMost, end() - begin() - at);
    body(master_.narrow(0, at, elements), own_weights().narrow(0, at, elements));
  }
}

at::Tensor Trainer::own_gradient() const {
  return sharded_ ? accumulated_ : accumulated_.slice(0, begin(), end());
}

at::Tensor Trainer::own_weights() const {
  return sharded_ ? sharded_->own() : weights_.flat.slice(0, begin(), end());
}

at::Tensor Trainer::hidden_of(const Batch& batch) const {
  const at::Device device = device_;
  const auto attention = std::make_shared<lm::PackedAttention>(batch.cumulative_lengths, device);
  const bool recompute = run_.machine.recompute && c10::GradMode::is_enabled();
  return training_hidden_states(weights_, on_device(batch.tokens, device), on_device(batch.positions, device),
                                attention, recompute);
}

at::Tensor Trainer::loss_of(const Batch& batch, double scale) const {
  return linear_cross_entropy(hidden_of(batch), weights_.head, targets_of(batch), scale, 0,
                              weights_.operators.get());
}

Result<Trainer::Figures> Trainer::gather_all(size_t count, const std::function<at::Tensor(size_t)>& backward,
                                             const std::function<bool()>& stop) {
  accumulated_.zero_();
  const bool apart = !accumulated_.is_same(gradient_);
  at::Tensor loss = at::zeros({}, accumulated_.options());
  for (size_t i = 0; i < count; ++i) {
    if (stop && stop()) return Error{"interrupted", Blame::kInterrupted};
    if (apart) gradient_.zero_();
    loss += backward(i);
    if (apart) accumulated_.add_(gradient_);
  }
  NEREID_TRY_STATUS(ranks_->sum_to_owners(accumulated_, borders_));
  return figures_of(loss);
}

Result<Trainer::Figures> Trainer::figures_of(const at::Tensor& loss) {
  // One transfer for both.
  const std::vector<at::Tensor> both = {loss.to(at::kDouble), own_gradient().norm().to(at::kDouble).square()};
  const at::Tensor on_host = at::stack(both).cpu();
  std::vector<double> sums = {on_host[0].item<double>(), on_host[1].item<double>()};
  NEREID_TRY_STATUS(ranks_->sum(sums));
  return Figures{.loss = sums[0], .gradient_norm = std::sqrt(sums[1])};
}

ShardedModel::Loss Trainer::sharded_loss(const Batch& batch, double scale) const {
  return [&batch, scale, this](const at::Tensor& hidden, const at::Tensor& head) {
    return linear_cross_entropy(hidden, head, targets_of(batch), scale);
  };
}

Result<Trainer::Figures> Trainer::gather(const StepData& step, const std::function<bool()>& stop) {
  if (sharded_) {
    accumulated_.zero_();
    at::Tensor loss = at::zeros({}, accumulated_.options());
    for (const Batch& batch : step.batches) {
      if (stop && stop()) return Error{"interrupted", Blame::kInterrupted};
      NEREID_TRY(
          const at::Tensor part,
          sharded_->learn(batch, sharded_loss(batch, 1.0 / static_cast<double>(step.targets)), accumulated_));
      loss += part;
    }
    return figures_of(loss);
  }
  const double scale = 1.0 / static_cast<double>(step.targets);
  return gather_all(step.batches.size(), [&](size_t i) { return learn(step.batches[i], scale); }, stop);
}

at::Tensor Trainer::learn(const Batch& batch, double scale) {
  const at::Tensor loss = loss_of(batch, scale);
  torch::autograd::backward({loss}, {});
  return loss.detach();
}

Trainer::Scores Trainer::score(const Batch& batch) const {
  const c10::NoGradGuard no_gradients;
  const auto scores = score_tokens(hidden_of(batch), weights_.head, targets_of(batch));
  return {scores.log_probabilities.cpu(), scores.entropies.cpu()};
}

Result<Trainer::Figures> Trainer::gather_from(const std::vector<Batch>& batches,
                                              const std::vector<at::Tensor>& gradients,
                                              const Supervised& besides) {
  return gather_scored(batches, [&](size_t i, const TokenScores&) { return gradients[i]; }, besides);
}

Result<Trainer::Figures> Trainer::gather_from(const std::vector<Batch>& batches,
                                              const GradientOf& gradient_of, const Supervised& besides) {
  const auto from_scores = [&](size_t i, const TokenScores& scores) {
    return gradient_of(i, {scores.log_probabilities.detach().cpu(), scores.entropies.cpu()});
  };
  return gather_scored(batches, from_scores, besides);
}

Result<Trainer::Figures> Trainer::gather_scored(
    const std::vector<Batch>& batches,
    const std::function<at::Tensor(size_t batch, const TokenScores& scores)>& gradient_of,
    const Supervised& besides) {
  return gather_all(batches.size() + besides.data.batches.size(), [&](size_t i) {
    if (i >= batches.size())
      return learn(besides.data.batches[i - batches.size()],
                   besides.weight / static_cast<double>(besides.data.targets));
    const auto scores = score_tokens(hidden_of(batches[i]), weights_.head, targets_of(batches[i]));
    torch::autograd::backward({scores.log_probabilities}, {gradient_of(i, scores).to(device_)});
    return at::zeros({}, accumulated_.options());
  });
}

Status Trainer::apply(double gradient_norm, double share) {
  const c10::NoGradGuard no_gradients;
  copies_.hold();
  const at::Tensor own = own_gradient();
  if (gradient_norm > run_.optimizer.clip_norm) own.mul_(run_.optimizer.clip_norm / gradient_norm);
  if (run_.machine.offload_optimizer) {
    optimizer_.step_offloaded(master_, own, own_weights(), share);
    return ranks_->share_from_owners(weights_.flat, borders_);
  }
  optimizer_.step(master_, own, share);
  return spread_master();
}

Status Trainer::spread_master() {
  const c10::NoGradGuard no_gradients;
  const at::Tensor own = own_weights();
  if (run_.machine.offload_optimizer)
    for_pieces([&](const at::Tensor& master, const at::Tensor& part) { part.copy_(master.to(device_)); });
  else if (own.data_ptr() != master_.data_ptr())
    own.copy_(master_);
  return sharded_ ? ok_status() : ranks_->share_from_owners(weights_.flat, borders_);
}

Status Trainer::copy_state(HostState& to, bool with_weights) {
  const c10::NoGradGuard no_gradients;
  if (sharded_) {
    if (with_weights && !to.flat.defined())
      to.flat = at::zeros({weights_.layout.elements}, sharded_->own().options().device(at::kCPU));
    NEREID_TRY_STATUS(sharded_->copy_whole(with_weights ? to.flat : at::Tensor()));
  }
  if (run_.machine.offload_optimizer) copies_.settle();  // host to host: not in the order of a stream
  copies_.begin();
  copies_.copy(to.master, master_);
  copies_.copy(to.first, optimizer_.first());
  copies_.copy(to.second, optimizer_.second());
  if (with_weights && !sharded_) copies_.copy(to.flat, weights_.flat);
  copies_.end();
  return ok_status();
}

Result<double> Trainer::loss_sum(const std::vector<Batch>& batches) {
  const c10::NoGradGuard no_gradients;
  double sum = 0;
  for (const Batch& batch : batches) {
    if (sharded_) {
      NEREID_TRY(const at::Tensor part, sharded_->look(batch, sharded_loss(batch, 1)));
      sum += part.item<double>();
    } else {
      sum += loss_of(batch, 1).item<double>();
    }
  }
  return sum;
}

}  // namespace nereid::train
