#include "nereid/lm/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// x: [tokens, ..., weight's size]
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const Config& config) {
  return at::rms_norm(x, {weight.size(0)}, weight, config.rms_norm_eps);
}

// x: [tokens, heads, head_dim]. Turns each pair of dimensions (i, i + head_dim/2), in float32 at least.
at::Tensor rotate(const at::Tensor& x, const Rotation& rotation) {
  const auto halves = x.to(c10::promoteTypes(x.scalar_type(), at::kFloat)).chunk(2, -1);
  return at::cat({halves[0] * rotation.cosines - halves[1] * rotation.sines,
                  halves[1] * rotation.cosines + halves[0] * rotation.sines},
                 -1)
      .to(x.scalar_type());
}

// A projection's heads as attention sees them: normed, where the model's are, and turned.
at::Tensor prepared(const Config& config, const at::Tensor& x, const at::Tensor& weight,
                    const Rotation& rotation) {
  return rotate(config.query_key_norm() ? norm(x, weight, config) : x, rotation);
}

// x: [tokens, hidden]. The result is [tokens, heads, head_dim].
at::Tensor attended(const Weights& weights, int64_t index, const at::Tensor& x, const Rotation& rotation,
                    Attention& attention) {
  const Config& config = weights.config;
  const LayerWeights& layer = weights.layers[static_cast<size_t>(index)];
  const auto joined = at::linear(x, layer.query_key_value, optional(layer.query_key_value_bias))
                          .view({x.size(0), -1, config.head_dim});
  if (weights.operators) {
    const Documents* documents = attention.documents();
    NEREID_CHECK(documents != nullptr, "attention of packed documents, where operators are given");
    return weights.operators->attend(joined, layer.query_norm, layer.key_norm, rotation, *documents);
  }
  const auto parts =
      joined.split_with_sizes({config.heads, config.key_value_heads, config.key_value_heads}, 1);
  return attention.attend(index, prepared(config, parts[0], layer.query_norm, rotation),
                          prepared(config, parts[1], layer.key_norm, rotation), parts[2]);
}

// x: [tokens, hidden]
at::Tensor feed_forward(const Weights& weights, const LayerWeights& layer, const at::Tensor& x) {
  const auto joined = at::linear(x, layer.gate_up, optional(layer.gate_up_bias));
  at::Tensor gated;
  if (weights.operators) {
    gated = weights.operators->gated(joined);
  } else {
    const auto halves = joined.chunk(2, -1);
    gated = at::silu(halves[0]) * halves[1];
  }
  return at::linear(gated, layer.down, optional(layer.down_bias));
}

// What goes from layer to layer: the residual stream is their sum. Norms take the sum. `added` may be
// undefined.
struct Stream {
  at::Tensor residual, added;  // [tokens, hidden]
};

Normed add_and_norm(const Weights& weights, const Stream& stream, const at::Tensor& weight) {
  if (weights.operators) return weights.operators->add_and_norm(stream.residual, stream.added, weight);
  const auto sum = stream.added.defined() ? stream.residual + stream.added : stream.residual;
  return {sum, norm(sum, weight, weights.config)};
}

Stream through_layer(const Weights& weights, int64_t index, const Stream& stream, const Rotation& rotation,
                     Attention& attention) {
  const LayerWeights& layer = weights.layers[static_cast<size_t>(index)];
  const auto before = add_and_norm(weights, stream, layer.input_norm);
  const auto seen =
      attended(weights, index, before.normed, rotation, attention).reshape({before.normed.size(0), -1});
  const auto after = add_and_norm(
      weights, {before.sum, at::linear(seen, layer.output, optional(layer.output_bias))}, layer.post_norm);
  return {after.sum, feed_forward(weights, layer, after.normed)};
}

}  // namespace

Rotation rotation_at(const Weights& weights, const at::Tensor& positions) {
  const auto angles = (positions.to(at::kFloat).unsqueeze(1) * weights.rope_frequencies).unsqueeze(1);
  auto cosines = angles.cos(), sines = angles.sin();
  if (weights.rope_factor != 1) cosines.mul_(weights.rope_factor), sines.mul_(weights.rope_factor);
  return {cosines, sines};
}

at::Tensor layer_forward(const Weights& weights, int64_t index, const at::Tensor& hidden,
                         const Rotation& rotation, Attention& attention) {
  const Stream stream = through_layer(weights, index, {hidden, {}}, rotation, attention);
  return stream.residual + stream.added;
}

at::Tensor hidden_states(const Weights& weights, const at::Tensor& tokens, const at::Tensor& positions,
                         Attention& attention) {
  const Rotation rotation = rotation_at(weights, positions);
  Stream stream{at::embedding(weights.embedding, tokens), {}};
  for (int64_t i = 0; i < weights.config.layers; ++i)
    stream = through_layer(weights, i, stream, rotation, attention);
  return add_and_norm(weights, stream, weights.norm).normed;
}

at::Tensor logits_of(const Weights& weights, const at::Tensor& hidden) {
  return at::linear(hidden, weights.head);
}

}  // namespace nereid::lm
