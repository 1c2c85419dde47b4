#include "nereid/lm/decoder/weights.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "nereid/base/check.h"
#include "nereid/lm/checkpoint/rope.h"

namespace nereid::lm {
namespace {

at::Tensor& place_of(LayerWeights& layer, Role role) {
  switch (role) {
    case Role::kInputNorm:
      return layer.input_norm;
    case Role::kPostNorm:
      return layer.post_norm;
    case Role::kQuery:
      return layer.query;
    case Role::kKey:
      return layer.key;
    case Role::kValue:
      return layer.value;
    case Role::kOutput:
      return layer.output;
    case Role::kQueryBias:
      return layer.query_bias;
    case Role::kKeyBias:
      return layer.key_bias;
    case Role::kValueBias:
      return layer.value_bias;
    case Role::kOutputBias:
      return layer.output_bias;
    case Role::kQueryNorm:
      return layer.query_norm;
    case Role::kKeyNorm:
      return layer.key_norm;
    case Role::kGate:
      return layer.gate;
    case Role::kUp:
      return layer.up;
    case Role::kDown:
      return layer.down;
    case Role::kGateBias:
      return layer.gate_bias;
    case Role::kUpBias:
      return layer.up_bias;
    case Role::kDownBias:
      return layer.down_bias;
    case Role::kEmbedding:
    case Role::kNorm:
    case Role::kHead:
      break;
  }
  NEREID_CHECK(false, "the role of a layer's parameter, got {}", static_cast<int>(role));
}

at::Tensor& place_of(Weights& weights, const Parameter& parameter) {
  switch (parameter.role) {
    case Role::kEmbedding:
      return weights.embedding;
    case Role::kNorm:
      return weights.norm;
    case Role::kHead:
      return weights.head;
    default:
      return place_of(weights.layers[static_cast<size_t>(parameter.layer)], parameter.role);
  }
}

// What lies from `first` on, as one tensor of so many rows.
at::Tensor joined(const at::Tensor& first, int64_t rows) {
  if (!first.defined()) return {};
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes[0] = rows;
  return first.detach().as_strided(sizes, first.strides()).detach();
}

}  // namespace

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return at::kBool;
    case Dtype::kU8:
      return at::kByte;
    case Dtype::kI8:
      return at::kChar;
    case Dtype::kI16:
      return at::kShort;
    case Dtype::kI32:
      return at::kInt;
    case Dtype::kI64:
      return at::kLong;
    case Dtype::kF16:
      return at::kHalf;
    case Dtype::kBF16:
      return at::kBFloat16;
    case Dtype::kF32:
      return at::kFloat;
    case Dtype::kF64:
      return at::kDouble;
    default:
      break;
  }
  NEREID_CHECK(false, "a dtype that is computed with, got {}", torch_name(dtype));
}

Dtype dtype_of(at::ScalarType type) {
  for (const Dtype dtype : {Dtype::kBool, Dtype::kU8, Dtype::kI8, Dtype::kI16, Dtype::kI32, Dtype::kI64,
                            Dtype::kF16, Dtype::kBF16, Dtype::kF32, Dtype::kF64})
    if (scalar_type(dtype) == type) return dtype;
  NEREID_CHECK(false, "a type that safetensors has, got {}", c10::toString(type));
}

Weights make_weights(const Config& config, at::Device device) {
  const c10::NoGradGuard no_gradients;
  Weights weights;
  weights.config = config;
  weights.layout = lay_out_parameters(config);
  weights.flat =
      at::zeros({weights.layout.elements}, at::TensorOptions(device).dtype(scalar_type(config.dtype)));
  weights.layers.resize(static_cast<size_t>(config.layers));
  for (const auto& parameter : weights.layout.parameters) {
    const auto view =
        weights.flat.narrow(0, parameter.offset, parameter.elements).view(parameter.info.shape).detach();
    weights.parameters.push_back(view);
    place_of(weights, parameter) = view;
  }
  if (config.tie_word_embeddings) weights.head = weights.embedding;
  const int64_t all_heads = (config.heads + 2 * config.key_value_heads) * config.head_dim;
  for (auto& layer : weights.layers) {
    layer.query_key_value = joined(layer.query, all_heads);
    layer.query_key_value_bias = joined(layer.query_bias, all_heads);
    layer.gate_up = joined(layer.gate, 2 * config.intermediate_size);
    layer.gate_up_bias = joined(layer.gate_bias, 2 * config.intermediate_size);
  }
  const Rope rope = make_rope(config);
  weights.rope_frequencies = at::tensor(rope.inverse_frequencies, at::kFloat).to(device);
  weights.rope_factor = rope.attention_factor;
  return weights;
}

void initialize(Weights& weights, uint64_t seed) {
  const c10::NoGradGuard no_gradients;
  auto generator = at::detail::createCPUGenerator(seed);
  for (size_t i = 0; i < weights.parameters.size(); ++i) {
    const auto& info = weights.layout.parameters[i].info;
    auto parameter = weights.parameters[i].detach();
    if (info.name.ends_with("norm.weight"))
      parameter.fill_(1);
    else if (info.name.ends_with(".bias"))
      parameter.zero_();
    else
      parameter.copy_(
          at::empty(info.shape, at::kFloat).normal_(0, weights.config.initializer_range, generator));
  }
}

at::Tensor require_gradients(Weights& weights) {
  const at::Tensor gradient = at::zeros_like(weights.flat);
  const auto gather = [&](at::Tensor& leaf) {
    if (!leaf.defined()) return;
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = gradient.as_strided(leaf.sizes(), leaf.strides(),
                                              leaf.storage_offset() - weights.flat.storage_offset());
  };
  for (auto& parameter : weights.parameters) gather(parameter);
  for (auto& layer : weights.layers)
    for (auto* joined :
         {&layer.query_key_value, &layer.query_key_value_bias, &layer.gate_up, &layer.gate_up_bias})
      gather(*joined);
  return gradient;
}

}  // namespace nereid::lm
