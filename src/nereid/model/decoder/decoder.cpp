#include "nereid/model/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

namespace nereid::model {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; }

// x: [tokens, ..., weight's size]
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const Config& config) {
  return at::rms_norm(x, {weight.size(0)}, weight, config.rms_norm_eps);
}

at::Tensor rotate(const Weights& weights, const at::Tensor& x, const Rotation& rotation);
// A projection's heads as attention sees them: normed, where the model's are, and turned.
at::Tensor prepared(const Weights& weights, const at::Tensor& x, const at::Tensor& weight, const Rotation& rotation) {
  if (!weights.config.query_key_norm()) return rotate(weights, x, rotation);
  if (weights.operators) return weights.operators->norm_rotate(x, weight, rotation);
  return rotate(weights, norm(x, weight, weights.config), rotation);
}

// x: [tokens, heads, head_dim]. Turns each pair of dimensions (i, i + head_dim/2), in float32 at least.
at::Tensor rotate(const Weights& weights, const at::Tensor& x, const Rotation& rotation) {
  if (weights.operators) return weights.operators->rotate(x, rotation);
  const auto halves = x.to(c10::promoteTypes(x.scalar_type(), at::kFloat)).chunk(2, -1);
  return at::cat({halves[0] * rotation.cosines - halves[1] * rotation.sines, halves[1] * rotation.cosines + halves[0] * rotation.sines}, -1)
      .to(x.scalar_type());
}

struct Projected {
  at::Tensor query, key, value;  // [tokens, its heads, head_dim]
};
// x: [tokens, hidden]
Projected project(const Config& config, const LayerWeights& layer, const at::Tensor& x) {
  const int64_t dim = config.head_dim;
  if (!c10::GradMode::is_enabled()) {
    const auto all = at::linear(x, layer.query_key_value, optional(layer.query_key_value_bias)).view({x.size(0), -1, dim});
    const auto parts = all.split_with_sizes({config.heads, config.key_value_heads, config.key_value_heads}, 1);
    return {parts[0], parts[1], parts[2]};
  }
  const auto one = [&](const at::Tensor& weight, const at::Tensor& bias) {
    return at::linear(x, weight, optional(bias)).view({x.size(0), -1, dim});
  };
  return {one(layer.query, layer.query_bias), one(layer.key, layer.key_bias), one(layer.value, layer.value_bias)};
}

// x: [tokens, hidden]
at::Tensor feed_forward(const Weights& weights, const LayerWeights& layer, const at::Tensor& x) {
  at::Tensor gate, up;
  if (!c10::GradMode::is_enabled()) {
    const auto halves = at::linear(x, layer.gate_up, optional(layer.gate_up_bias)).chunk(2, -1);
    gate = halves[0], up = halves[1];
  } else {
    gate = at::linear(x, layer.gate, optional(layer.gate_bias)), up = at::linear(x, layer.up, optional(layer.up_bias));
  }
  const auto gated = weights.operators ? weights.operators->gated(gate, up) : at::silu(gate) * up;
  return at::linear(gated, layer.down, optional(layer.down_bias));
}

}  // namespace

Rotation rotation_at(const Weights& weights, const at::Tensor& positions) {
  const auto angles = (positions.to(at::kFloat).unsqueeze(1) * weights.rope_frequencies).unsqueeze(1);
  auto cosines = angles.cos(), sines = angles.sin();
  if (weights.rope_factor != 1) cosines.mul_(weights.rope_factor), sines.mul_(weights.rope_factor);
  return {cosines, sines};
}

at::Tensor layer_forward(const Weights& weights, int64_t index, const at::Tensor& hidden, const Rotation& rotation, Attention& attention) {
  const Config& config = weights.config;
  const LayerWeights& layer = weights.layers[static_cast<size_t>(index)];
  auto [query, key, value] = project(config, layer, norm(hidden, layer.input_norm, config));
  const auto seen = attention.attend(index, prepared(weights, query, layer.query_norm, rotation),
                                     prepared(weights, key, layer.key_norm, rotation), value);
  const auto after = hidden + at::linear(seen.reshape({hidden.size(0), -1}), layer.output, optional(layer.output_bias));
  return after + feed_forward(weights, layer, norm(after, layer.post_norm, config));
}

at::Tensor hidden_states(const Weights& weights, const at::Tensor& tokens, const at::Tensor& positions, Attention& attention) {
  const Rotation rotation = rotation_at(weights, positions);
  at::Tensor hidden = at::embedding(weights.embedding, tokens);
  for (int64_t i = 0; i < weights.config.layers; ++i) hidden = layer_forward(weights, i, hidden, rotation, attention);
  return norm(hidden, weights.norm, weights.config);
}

at::Tensor logits_of(const Weights& weights, const at::Tensor& hidden) { return at::linear(hidden, weights.head); }

}  // namespace nereid::model
