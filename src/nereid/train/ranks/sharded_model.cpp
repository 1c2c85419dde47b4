#include "nereid/train/ranks/sharded_model.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rms_norm.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "nereid/lm/decoder/device.h"

namespace nereid::train {
namespace {

at::Tensor to_device(const std::vector<int32_t>& numbers, at::Device device) {
  return lm::sent_to(numbers, device).to(at::kLong);
}

// Where a layer begins and how long it is, with the gaps between its parameters.
std::pair<int64_t, int64_t> layer_range(const lm::ParameterLayout& layout, int64_t layer) {
  int64_t begin = -1, end = -1;
  for (const auto& parameter : layout.parameters) {
    if (parameter.layer != layer) continue;
    if (begin < 0) begin = parameter.offset;
    end = parameter.offset + parameter.elements;
  }
  return {begin, end - begin};
}

at::Tensor leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(true); }

}  // namespace

// What a forward leaves.
struct ShardedModel::Passage {
  at::Tensor tokens;
  lm::Rotation rotation;
  std::shared_ptr<lm::Attention> attention;
  std::vector<at::Tensor> inputs;  // of each layer
  at::Tensor last;                 // the last layer's output
};

ShardedModel::ShardedModel(const lm::Weights& weights, Ranks& ranks, std::vector<int64_t> borders)
    : ranks_(&ranks), borders_(std::move(borders)), layout_(weights.layout), config_(weights.config) {
  const c10::NoGradGuard no_gradients;
  own_ = weights.flat.slice(0, begin(), borders_[static_cast<size_t>(ranks.rank()) + 1]).clone();
  lm::Config one = config_;
  one.layers = 1, one.vocab_size = 1;
  stage_ = lm::make_weights(one, weights.flat.device());
  stage_.operators = weights.operators;
  const auto [first, length] = layer_range(stage_.layout, 0);
  stage_layer_ = stage_.flat.narrow(0, first, length);
  stage_gradient_ = lm::require_gradients(stage_).narrow(0, first, length);
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    const auto [offset, elements] = layer_range(layout_, layer);
    NEREID_CHECK(elements == length, "layers of {} elements, got {}", length, elements);
    layer_offsets_.push_back(offset);
  }
  for (const auto& parameter : layout_.parameters) {
    if (parameter.role == lm::Role::kEmbedding) embedding_ = &parameter;
    if (parameter.role == lm::Role::kNorm) norm_ = &parameter;
    if (parameter.role == lm::Role::kHead) head_ = &parameter;
  }
  if (head_ == nullptr) head_ = embedding_;
}

Status ShardedModel::fetch(int64_t offset, const at::Tensor& part) {
  const c10::NoGradGuard no_gradients;
  std::vector<int64_t> borders;
  for (const int64_t border : borders_)
    borders.push_back(std::clamp<int64_t>(border - offset, 0, part.numel()));
  const auto rank = static_cast<size_t>(ranks_->rank());
  if (borders[rank] < borders[rank + 1])
    part.slice(0, borders[rank], borders[rank + 1])
        .copy_(own_.slice(0, offset + borders[rank] - begin(), offset + borders[rank + 1] - begin()));
  return ranks_->share_from_owners(part, borders);
}

Result<at::Tensor> ShardedModel::fetch(const lm::Parameter& parameter) {
  const at::Tensor part = at::empty({parameter.elements}, own_.options());
  NEREID_TRY_STATUS(fetch(parameter.offset, part));
  return part.view(parameter.info.shape);
}

Status ShardedModel::fetch_layer(int64_t layer) {
  return fetch(layer_offsets_[static_cast<size_t>(layer)], stage_layer_);
}

Status ShardedModel::reduce_to_owner(int64_t offset, const at::Tensor& part, const at::Tensor& gradient) {
  const c10::NoGradGuard no_gradients;
  at::Tensor sum = part.reshape({-1}).to(at::kFloat);
  if (sum.is_alias_of(part)) sum = sum.clone();  // what comes of others' parts is undefined
  std::vector<int64_t> borders;
  for (const int64_t border : borders_)
    borders.push_back(std::clamp<int64_t>(border - offset, 0, sum.numel()));
  NEREID_TRY_STATUS(ranks_->sum_to_owners(sum, borders));
  const auto rank = static_cast<size_t>(ranks_->rank());
  if (borders[rank] < borders[rank + 1])
    gradient.slice(0, offset + borders[rank] - begin(), offset + borders[rank + 1] - begin())
        .add_(sum.slice(0, borders[rank], borders[rank + 1]));
  return ok_status();
}

Result<ShardedModel::Passage> ShardedModel::forward(const Batch& batch) {
  const at::Device device = own_.device();
  Passage passage{.tokens = to_device(batch.tokens, device),
                  .rotation = lm::rotation_at(stage_, to_device(batch.positions, device)),
                  .attention = std::make_shared<lm::PackedAttention>(batch.cumulative_lengths, device),
                  .inputs = {},
                  .last = {}};
  at::Tensor hidden;
  {
    NEREID_TRY(const at::Tensor embedding, fetch(*embedding_));
    hidden = at::embedding(embedding, passage.tokens);
  }
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    NEREID_TRY_STATUS(fetch_layer(layer));
    passage.inputs.push_back(hidden);
    hidden = lm::layer_forward(stage_, 0, hidden, passage.rotation, *passage.attention).detach();
  }
  passage.last = hidden;
  return passage;
}

Result<at::Tensor> ShardedModel::look(const Batch& batch, const Loss& loss) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const Passage passage, forward(batch));
  NEREID_TRY(const at::Tensor norm, fetch(*norm_));
  NEREID_TRY(const at::Tensor head, fetch(*head_));
  return loss(at::rms_norm(passage.last, {norm.size(0)}, norm, config_.rms_norm_eps), head);
}

Result<at::Tensor> ShardedModel::learn(const Batch& batch, const Loss& loss, const at::Tensor& gradient) {
  const at::AutoGradMode with_gradients(true);
  NEREID_TRY(Passage passage, forward(batch));
  at::Tensor value, upward;  // upward: the gradient of what is above, by a layer's output
  {
    NEREID_TRY(at::Tensor norm, fetch(*norm_));
    NEREID_TRY(at::Tensor head, fetch(*head_));
    norm.requires_grad_(true), head.requires_grad_(true);
    const at::Tensor last = leaf(passage.last);
    value = loss(at::rms_norm(last, {norm.size(0)}, norm, config_.rms_norm_eps), head);
    torch::autograd::backward({value}, {});
    NEREID_TRY_STATUS(reduce_to_owner(head_->offset, head.grad(), gradient));
    NEREID_TRY_STATUS(reduce_to_owner(norm_->offset, norm.grad(), gradient));
    upward = last.grad();
  }
  for (int64_t layer = config_.layers - 1; layer >= 0; --layer) {
    NEREID_TRY_STATUS(fetch_layer(layer));
    stage_gradient_.zero_();
    const at::Tensor input = leaf(passage.inputs.back());
    passage.inputs.pop_back();
    const at::Tensor output = lm::layer_forward(stage_, 0, input, passage.rotation, *passage.attention);
    torch::autograd::backward({output}, {upward});  // adds to the stage's gradient
    upward = input.grad();
    NEREID_TRY_STATUS(reduce_to_owner(layer_offsets_[static_cast<size_t>(layer)], stage_gradient_, gradient));
  }
  const c10::NoGradGuard no_gradients;
  const at::Tensor of_embedding =
      at::embedding_dense_backward(upward, passage.tokens, config_.vocab_size, /*padding_idx=*/-1, false);
  NEREID_TRY_STATUS(reduce_to_owner(embedding_->offset, of_embedding, gradient));
  return value.detach();
}

Status ShardedModel::copy_whole(const at::Tensor& flat) {
  const c10::NoGradGuard no_gradients;
  for (const auto& parameter : layout_.parameters) {
    NEREID_TRY(const at::Tensor part, fetch(parameter));
    if (flat.defined()) flat.narrow(0, parameter.offset, parameter.elements).copy_(part.view({-1}));
  }
  return ok_status();
}

}  // namespace nereid::train
