#include "nereid/lm/checkpoint/config.h"

#include <gtest/gtest.h>

#include "nereid/base/file.h"
#include "nereid/lm/checkpoint/rope.h"

namespace nereid::lm {
namespace {

// As Qwen/Qwen3-8B's own file has it.
Json qwen3() {
  return Json::parse(
      R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "bos_token_id": 151643,
    "eos_token_id": 151645,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960, "max_window_layers": 36, "model_type": "qwen3",
    "num_attention_heads": 32, "num_hidden_layers": 36,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
    "sliding_window": null,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 151936})");
}

Json llama31() {
  return Json::parse(
      R"({"architectures": ["LlamaForCausalLM"], "bos_token_id": 128000, "eos_token_id": [128001, 128008,
    128009],
    "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
    "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "vocab_size": 128256})");
}

std::string config_error(const Json& json) {
  const auto config = parse_config(json, "config.json");
  if (config.ok()) return "";
  EXPECT_EQ(config.error().blame, Blame::kInput);
  return config.error().message;
}

TEST(Config, ReadsQwen3) {
  const auto config = parse_config(qwen3(), "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->family, Family::kQwen3);
  EXPECT_EQ(config->key_value_heads, 8);
  EXPECT_EQ(config->rope_theta, 1e6);
  EXPECT_EQ(config->dtype, Dtype::kBF16);
  EXPECT_TRUE(config->query_key_norm());
  EXPECT_FALSE(config->attention_bias);
  EXPECT_EQ(config->eos_token_ids, std::vector<int64_t>{151645});
  EXPECT_EQ(config->parameter_count(), 8'190'735'360);  // as its model card's 8.2B
}

TEST(Config, ReadsLlama3AndItsScaling) {
  const auto config = parse_config(llama31(), "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::kLlama3);
  EXPECT_EQ(config->parameter_count(), 8'030'261'248);
  EXPECT_EQ(config->eos_token_ids.size(), 3u);
}

TEST(Config, ReadsWhatTransformers5Writes) {
  Json json = llama31();
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = json["rope_theta"];
  json["dtype"] = json["torch_dtype"];
  for (const char* key : {"rope_scaling", "rope_theta", "torch_dtype"}) json.erase(key);
  EXPECT_EQ(*parse_config(json, ""), *parse_config(llama31(), ""));
}

TEST(Config, WhatIsWrittenIsReadAgain) {
  Json yarn = qwen3();
  yarn["rope_scaling"] = {{"rope_type", "yarn"},
                          {"factor", 4.0},
                          {"original_max_position_embeddings", 32768},
                          {"attention_factor", 1.5}};
  Json linear = llama31();
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  linear["attention_bias"] = linear["mlp_bias"] = true;
  Json qwen2 = qwen3();
  qwen2["model_type"] = "qwen2", qwen2["architectures"] = {"Qwen2ForCausalLM"};
  qwen2.erase("attention_bias");
  for (const Json& json : {qwen3(), llama31(), yarn, linear, qwen2}) {
    const auto config = parse_config(json, "config.json");
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto again = parse_config(to_json(*config), "written");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, *config);
  }
}

TEST(Config, RefusesWhatItDoesNotImplement) {
  const auto with = [](const char* key, Json value) {
    Json json = qwen3();
    json[key] = std::move(value);
    return config_error(json);
  };
  EXPECT_EQ(with("hidden_act", "gelu"), "config.json.hidden_act: expected \"silu\", got \"gelu\"");
  EXPECT_EQ(with("model_type", "gpt2"),
            "config.json.model_type: expected one of qwen3, qwen2, llama, got \"gpt2\"");
  EXPECT_EQ(
      with("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}),
      "config.json.rope_scaling.rope_type: expected one of default, linear, llama3, yarn, got \"dynamic\"");
  EXPECT_EQ(with("num_key_value_heads", 5).substr(0, 90),
            "config.json: expected num_attention_heads that are a multiple of num_key_value_heads, not ");
  EXPECT_NE(with("quantization_config", {{"bits", 4}}), "");
  EXPECT_NE(with("layer_types", {"full_attention", "sliding_attention"}), "");
  EXPECT_NE(with("partial_rotary_factor", 0.5), "");
  EXPECT_NE(with("architectures", {"Qwen3ForSequenceClassification"}), "");
  EXPECT_NE(with("torch_dtype", "int8"), "");
  EXPECT_NE(with("head_dim", 127), "");
  EXPECT_NE(with("vocab_size", -1), "");
  EXPECT_NE(with("hidden_size", "4096"), "");
  EXPECT_NE(with("eos_token_id", 151936), "");
  EXPECT_NE(config_error(Json::array()), "");
  Json windowed = qwen3();
  windowed["use_sliding_window"] = true, windowed["sliding_window"] = 4096;
  EXPECT_EQ(config_error(windowed), "");  // from layer 36 of 36 on: in no layer
  windowed["max_window_layers"] = 20;
  EXPECT_NE(config_error(windowed), "");
  Json nameless = qwen3();
  nameless.erase("vocab_size");
  EXPECT_TRUE(config_error(nameless).starts_with(
      "config.json: expected an object with 'vocab_size', got an object with"));
}

TEST(Config, AnyMissingOrOddFieldIsAnErrorOrAConfig) {
  for (const Json& whole : {qwen3(), llama31()}) {
    for (const auto& [key, unused] : whole.items()) {
      for (const Json& odd : {Json(), Json(-1), Json(1e300), Json("x"), Json::array(), Json::object(),
                              Json(true), Json(INT64_MAX)}) {
        Json json = whole;
        json[key] = odd;
        const auto config = parse_config(json, "config.json");
        EXPECT_TRUE(!config.ok() || parse_config(to_json(*config), "again").ok()) << key << odd;
      }
    }
  }
}

TEST(GenerationConfig, EndsWithItsOwnTokens) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder.ok());
  const auto config = parse_config(qwen3(), "");
  EXPECT_EQ(read_generation_config(folder->path(), *config)->eos_token_ids, std::vector<int64_t>{151645});
  ASSERT_TRUE(write_file_atomically(
                  folder->path() / "generation_config.json",
                  R"({"eos_token_id": [151645, 151643], "temperature": 0.6, "top_k": 20, "top_p": 0.95,
          "complete_sizes": true, "max_new_tokens": 4096})")
                  .ok());
  const auto read = read_generation_config(folder->path(), *config);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->eos_token_ids, (std::vector<int64_t>{151645, 151643}));
  EXPECT_EQ(read->bos_token_id, 151643);
  EXPECT_EQ(read->top_k, 20);
  EXPECT_EQ(read->temperature, 0.6);
  EXPECT_TRUE(read->complete_sizes);
  EXPECT_EQ(read->max_new_tokens, 4096);

  const auto with = [&](const char* word) {
    EXPECT_TRUE(write_file_atomically(folder->path() / "generation_config.json",
                                      fmt::format(R"({{"do_sample": {}, "temperature": 0.6}})", word))
                    .ok());
    return read_generation_config(folder->path(), *config);
  };
  EXPECT_EQ(with("true")->temperature, 0.6);
  EXPECT_EQ(with("false")->temperature, 0);
  EXPECT_EQ(with("null")->temperature, 0.6);
  EXPECT_NE(with("1").error().message.find("do_sample: expected"), std::string::npos)
      << with("1").error().message;
}

TEST(Rope, ScalesByWavelength) {
  auto config = *parse_config(llama31(), "");
  const auto scaled = make_rope(config).inverse_frequencies;
  config.rope_scaling = {};
  const auto plain = make_rope(config).inverse_frequencies;
  ASSERT_EQ(plain.size(), 64u);
  EXPECT_FLOAT_EQ(plain[0], 1);
  EXPECT_FLOAT_EQ(plain[32], 1 / std::sqrt(500000.0f));
  EXPECT_EQ(scaled[0], plain[0]);        // short waves stay
  EXPECT_EQ(scaled[63], plain[63] / 8);  // long wavelengths are scaled
  size_t between = 0;
  for (size_t i = 0; i < 64; ++i) between += scaled[i] < plain[i] && scaled[i] > plain[i] / 8;
  EXPECT_GT(between, 0u);
}

}  // namespace
}  // namespace nereid::lm
