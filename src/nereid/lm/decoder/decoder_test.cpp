#include "nereid/lm/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "nereid/base/file.h"

namespace nereid::lm {
namespace {

Config small(Family family, bool tied) {
  return {.family = family,
          .vocab_size = 61,
          .hidden_size = 32,
          .intermediate_size = 48,
          .layers = 2,
          .heads = 4,
          .key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 128,
          .tie_word_embeddings = tied,
          .attention_bias = family == Family::kQwen2,
          .initializer_range = 0.2};
}

Weights drawn(Family family = Family::kQwen3, bool tied = false) {
  Weights weights = make_weights(small(family, tied), at::kCPU);
  initialize(weights, 7);
  return weights;
}

at::Tensor positions_of(const std::vector<int32_t>& cumulative) {
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i + 1 < cumulative.size(); ++i)
    parts.push_back(at::arange(cumulative[i + 1] - cumulative[i], at::kLong));
  return at::cat(parts);
}

at::Tensor forward(const Weights& weights, const at::Tensor& tokens, const std::vector<int32_t>& cumulative) {
  PackedAttention attention(cumulative, at::kCPU);
  return logits_of(weights, hidden_states(weights, tokens, positions_of(cumulative), attention));
}

TEST(Decoder, PackedDocumentsDoNotSeeEachOther) {
  const c10::NoGradGuard no_gradients;
  for (const Family family : {Family::kQwen3, Family::kQwen2, Family::kLlama}) {
    const Weights weights = drawn(family, family == Family::kQwen2);
    const auto tokens = at::randint(61, {19}, at::kLong);
    const auto together = forward(weights, tokens, {0, 5, 5, 6, 19});
    for (const auto& [begin, end] : {std::pair(0, 5), std::pair(5, 6), std::pair(6, 19)}) {
      const auto alone = forward(weights, tokens.slice(0, begin, end), {0, end - begin});
      EXPECT_LT((together.slice(0, begin, end) - alone).abs().max().item<float>(), 1e-5);
    }
    // And within a document nothing sees what follows it.
    const auto prefix = forward(weights, tokens.slice(0, 6, 11), {0, 5});
    EXPECT_LT((together.slice(0, 6, 11) - prefix).abs().max().item<float>(), 1e-5);
    EXPECT_GT((together.slice(0, 6, 11) - together.slice(0, 0, 5)).abs().max().item<float>(), 1e-2);
  }
}

TEST(Decoder, LaterQueriesSeeAllEarlierKeys) {
  const auto draw = [](int64_t length, int64_t heads) {
    return at::randint(1000, {length, heads, 8}, at::kFloat) / 500 - 1;
  };
  const auto query = draw(9, 4), key = draw(9, 2), value = draw(9, 2);
  const auto whole = attend_causally(query, key, value);
  for (int64_t from = 0; from < 9; ++from)
    EXPECT_LT(
        (attend_causally(query.slice(0, from), key, value) - whole.slice(0, from)).abs().max().item<float>(),
        1e-6);
}

at::Tensor loss_of(const Weights& weights, const at::Tensor& tokens) {
  const auto logits = forward(weights, tokens, {0, 4, static_cast<int32_t>(tokens.size(0))});
  return at::nll_loss(at::log_softmax(logits.slice(0, 0, -1), -1), tokens.slice(0, 1));
}

// The gradient is the slope of the loss, for every parameter of every family.
TEST(Decoder, GradientsAreSlopes) {
  for (const Family family : {Family::kQwen3, Family::kQwen2, Family::kLlama}) {
    Config config = small(family, family == Family::kQwen2);
    config.dtype = Dtype::kF64;
    Weights weights = make_weights(config, at::kCPU);
    initialize(weights, 3);
    const auto gradient = require_gradients(weights);
    EXPECT_EQ(gradient.numel(), weights.flat.numel());
    const auto tokens = at::randint(61, {11}, at::kLong);
    loss_of(weights, tokens).backward();
    const c10::NoGradGuard no_gradients;
    for (size_t i = 0; i < weights.parameters.size(); ++i) {
      const auto& parameter = weights.parameters[i];
      const auto& name = weights.layout.parameters[i].info.name;
      ASSERT_TRUE(parameter.grad().defined()) << name;
      const auto direction = parameter.grad() / parameter.grad().norm();
      const double step = 1e-4;
      parameter.detach().add_(direction, step);
      const double above = loss_of(weights, tokens).item<double>();
      parameter.detach().add_(direction, -2 * step);
      const double below = loss_of(weights, tokens).item<double>();
      parameter.detach().add_(direction, step);
      const double slope = (above - below) / (2 * step), expected = parameter.grad().norm().item<double>();
      EXPECT_NEAR(slope, expected, 1e-5 * expected + 1e-7) << model_type(family) << " " << name;
    }
  }
}

TEST(Decoder, JoinedParametersAreTheSeparateOnes) {
  const Weights weights = drawn(Family::kQwen2);
  for (const auto& layer : weights.layers) {
    EXPECT_TRUE(layer.query_key_value.equal(at::cat({layer.query, layer.key, layer.value})));
    EXPECT_TRUE(
        layer.query_key_value_bias.equal(at::cat({layer.query_bias, layer.key_bias, layer.value_bias})));
    EXPECT_TRUE(layer.gate_up.equal(at::cat({layer.gate, layer.up})));
  }
}

TEST(Weights, WhatIsSavedIsLoadedAgain) {
  const auto folder = TemporaryFolder::create();
  for (const bool tied : {false, true}) {
    const Weights weights = drawn(Family::kLlama, tied);
    const auto path = folder->path() / (tied ? "tied" : "untied");
    // Small shards: several files.
    const auto saved = save_weights(weights, path, {.max_shard_bytes = 10000});
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    EXPECT_TRUE(std::filesystem::exists(path / "model.safetensors.index.json"));
    const auto loaded = load_weights(path, at::kCPU);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_TRUE(loaded->flat.equal(weights.flat));
    const auto half = load_weights(path, at::kCPU, Dtype::kBF16);
    ASSERT_TRUE(half.ok());
    EXPECT_TRUE(half->flat.equal(weights.flat.to(at::kBFloat16)));

    Weights other = make_weights(weights.config, at::kCPU);
    const auto* memory = static_cast<const float*>(other.flat.const_data_ptr());
    ASSERT_TRUE(load_weights_into(path, other).ok());
    EXPECT_TRUE(other.flat.equal(weights.flat));
    const auto& query = weights.layers[1].query;
    EXPECT_EQ(other.layers[1].query.const_data_ptr(), memory + query.storage_offset());
  }
}

TEST(Weights, ErrorsNameFileAndTensor) {
  const auto folder = TemporaryFolder::create();
  const Weights weights = drawn(Family::kLlama, true);
  ASSERT_TRUE(save_weights(weights, folder->path() / "m").ok());
  const auto error_with = [&](const char* key, Json value) {
    Json json = to_json(weights.config);
    json[key] = std::move(value);
    if (json["hidden_size"] != weights.config.hidden_size) json["intermediate_size"] = 1 << 20;
    EXPECT_TRUE(write_file_atomically(folder->path() / "m" / "config.json", json.dump()).ok());
    const auto loaded = load_weights(folder->path() / "m", at::kCPU);
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  const std::string at = (folder->path() / "m").string();
  EXPECT_EQ(error_with("num_hidden_layers", 2), "");
  EXPECT_EQ(error_with("tie_word_embeddings", false),
            at + ": expected a tensor 'lm_head.weight' of shape [61, 32], got none");
  EXPECT_EQ(error_with("vocab_size", 62),
            at + "/model.safetensors: tensor 'model.embed_tokens.weight': expected shape [62, 32], as "
                 "config.json asks for, got [61, 32]");
  EXPECT_EQ(error_with("num_hidden_layers", 1),
            at + "/model.safetensors: tensor 'model.layers.1.input_layernorm.weight': expected none of that "
                 "name in a llama with 1 layers");
  EXPECT_EQ(error_with("num_hidden_layers", 3),
            at + ": expected a tensor 'model.layers.2.input_layernorm.weight' of shape [32], got none");
  // Tensors of terabytes are an error, not an allocation.
  EXPECT_EQ(error_with("intermediate_size", 1 << 20),
            at +
                "/model.safetensors: tensor 'model.layers.0.mlp.gate_proj.weight': expected shape [1048576, "
                "32], as config.json asks for, got [" +
                std::to_string(weights.config.intermediate_size) + ", 32]");
  EXPECT_EQ(error_with("hidden_size", 1 << 20),
            at + "/model.safetensors: tensor 'model.embed_tokens.weight': expected shape [61, 1048576], as "
                 "config.json asks for, got [61, 32]");
}

}  // namespace
}  // namespace nereid::lm
