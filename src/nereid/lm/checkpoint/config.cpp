#include "nereid/lm/checkpoint/config.h"

#include <cmath>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"

namespace nereid::lm {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;  // of a vocabulary, and of a context

struct FamilyRow {
  Family family;
  std::string_view type, architecture;
};
constexpr FamilyRow kFamilies[] = {
    {Family::kQwen3, "qwen3", "Qwen3ForCausalLM"},
    {Family::kQwen2, "qwen2", "Qwen2ForCausalLM"},
    {Family::kLlama, "llama", "LlamaForCausalLM"},
};
const FamilyRow& family_row(Family family) { return kFamilies[static_cast<size_t>(family)]; }

// A member that is there and not null: Python's None is as good as absent.
Result<std::optional<JsonField>> given(const JsonField& object, std::string_view key) {
  NEREID_TRY(auto found, object.find(key));
  if (found && found->json().is_null()) found.reset();
  return found;
}

Result<double> number_at(const JsonField& object, std::string_view key, std::optional<double> otherwise,
                         double lowest) {
  NEREID_TRY(const auto field, given(object, key));
  if (!field) {
    if (!otherwise) return object.expected(fmt::format("an object with '{}'", key));
    return *otherwise;
  }
  NEREID_TRY(const double value, field->number());
  if (!std::isfinite(value) || value < lowest)
    return field->expected(fmt::format("a number of at least {}", lowest));
  return value;
}

Result<std::optional<double>> optional_number_at(const JsonField& object, std::string_view key) {
  NEREID_TRY(const auto field, given(object, key));
  if (!field) return std::optional<double>();
  NEREID_TRY(const double value, field->number());
  if (!std::isfinite(value) || value < 0) return field->expected("a number of at least 0");
  return std::optional<double>(value);
}

Result<int64_t> count_at(const JsonField& object, std::string_view key, std::optional<int64_t> otherwise,
                         int64_t most) {
  NEREID_TRY(const auto field, given(object, key));
  if (field) return field->integer(1, most);
  if (!otherwise) return object.expected(fmt::format("an object with '{}'", key));
  return *otherwise;
}

Result<bool> flag_at(const JsonField& object, std::string_view key, bool otherwise) {
  NEREID_TRY(const auto field, given(object, key));
  return field ? field->boolean() : otherwise;
}

Result<std::optional<int64_t>> token_at(const JsonField& object, std::string_view key, int64_t vocab_size) {
  NEREID_TRY(const auto field, given(object, key));
  if (!field) return std::optional<int64_t>();
  NEREID_TRY(const int64_t token, field->integer(-1, vocab_size - 1));
  // -1 is how some files of Llama say "none".
  return token < 0 ? std::nullopt : std::optional<int64_t>(token);
}

// One token, or a list of them.
Result<std::vector<int64_t>> tokens_at(const JsonField& object, std::string_view key, int64_t vocab_size) {
  NEREID_TRY(const auto field, given(object, key));
  std::vector<int64_t> tokens;
  if (!field) return tokens;
  if (!field->json().is_array()) {
    NEREID_TRY(const int64_t token, field->integer(0, vocab_size - 1));
    return std::vector<int64_t>{token};
  }
  NEREID_TRY_STATUS(field->each(64, [&](const JsonField& item) -> Status {
    NEREID_TRY(const int64_t token, item.integer(0, vocab_size - 1));
    tokens.push_back(token);
    return ok_status();
  }));
  return tokens;
}

Result<RopeScaling> read_scaling(const JsonField& rope, int64_t max_position_embeddings) {
  RopeScaling scaling;
  NEREID_TRY(auto type, given(rope, "rope_type"));
  if (!type) {
    NEREID_TRY(type, given(rope, "type"));
  }
  std::string kind = "default";
  if (type) {
    NEREID_TRY(kind, type->text());
  }
  NEREID_TRY(const double part, number_at(rope, "partial_rotary_factor", 1.0, 0));
  if (part != 1) return rope.expected("no partial_rotary_factor, or 1");
  if (kind == "default") return scaling;
  if (kind != "linear" && kind != "llama3" && kind != "yarn")
    return type->expected("one of default, linear, llama3, yarn");
  NEREID_TRY(scaling.factor, number_at(rope, "factor", std::nullopt, 1));
  scaling.kind = RopeScaling::Kind::kLinear;
  if (kind == "linear") return scaling;

  NEREID_TRY(scaling.original_max_position_embeddings,
             count_at(rope, "original_max_position_embeddings", max_position_embeddings, kMaxTokens));
  if (kind == "llama3") {
    scaling.kind = RopeScaling::Kind::kLlama3;
    NEREID_TRY(scaling.low_freq_factor, number_at(rope, "low_freq_factor", std::nullopt, 1e-6));
    NEREID_TRY(scaling.high_freq_factor, number_at(rope, "high_freq_factor", std::nullopt, 1e-6));
    if (scaling.high_freq_factor <= scaling.low_freq_factor)
      return rope.expected("a high_freq_factor above low_freq_factor");
    return scaling;
  }
  scaling.kind = RopeScaling::Kind::kYarn;
  NEREID_TRY(scaling.beta_fast, number_at(rope, "beta_fast", 32, 1e-6));
  NEREID_TRY(scaling.beta_slow, number_at(rope, "beta_slow", 1, 1e-6));
  NEREID_TRY(scaling.truncate, flag_at(rope, "truncate", true));
  NEREID_TRY(scaling.attention_factor, optional_number_at(rope, "attention_factor"));
  NEREID_TRY(scaling.mscale, optional_number_at(rope, "mscale"));
  NEREID_TRY(scaling.mscale_all_dim, optional_number_at(rope, "mscale_all_dim"));
  return scaling;
}

Status read_rope(const JsonField& root, Config& config) {
  NEREID_TRY(const double part, number_at(root, "partial_rotary_factor", 1.0, 0));
  if (part != 1) return root.expected("no partial_rotary_factor, or 1");
  NEREID_TRY(config.rope_theta, number_at(root, "rope_theta", 10000, 1));
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    NEREID_TRY(const auto rope, given(root, key));
    if (!rope) continue;
    NEREID_TRY(config.rope_theta, number_at(*rope, "rope_theta", config.rope_theta, 1));
    NEREID_TRY(config.rope_scaling, read_scaling(*rope, config.max_position_embeddings));
    break;
  }
  if (config.rope_theta == 1) return root.expected("a rope_theta above 1");
  return ok_status();
}

Status refuse_what_is_not_implemented(const JsonField& root, int64_t layers) {
  NEREID_TRY(const auto activation, given(root, "hidden_act"));
  if (activation && activation->json() != "silu") return activation->expected("\"silu\"");
  NEREID_TRY(const auto quantized, given(root, "quantization_config"));
  if (quantized) return quantized->expected("nothing: quantised weights are not read");
  NEREID_TRY(const auto types, given(root, "layer_types"));
  if (types) {
    return types->each(4096, [](const JsonField& type) -> Status {
      if (type.json() != "full_attention") return type.expected("\"full_attention\"");
      return ok_status();
    });
  }
  NEREID_TRY(const bool windowed, flag_at(root, "use_sliding_window", false));
  NEREID_TRY(const auto window, given(root, "sliding_window"));
  NEREID_TRY(const int64_t first, root.integer_at("max_window_layers", 28, 0, 1 << 20));
  if (windowed && window && first < layers)
    return window->expected(fmt::format(
        "no sliding window in use (use_sliding_window is true, and layers from {} on have it)", first));
  return ok_status();
}

Result<Dtype> read_dtype(const JsonField& root) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    NEREID_TRY(const auto field, given(root, key));
    if (!field) continue;
    NEREID_TRY(const std::string name, field->text());
    const auto dtype = dtype_from_torch(name);
    if (dtype == Dtype::kF32 || dtype == Dtype::kBF16 || dtype == Dtype::kF16) return *dtype;
    return field->expected("float32, bfloat16 or float16");
  }
  return Dtype::kF32;
}

Result<Family> read_family(const JsonField& root) {
  NEREID_TRY(const JsonField type, root.at("model_type"));
  NEREID_TRY(const std::string name, type.text());
  for (const auto& row : kFamilies) {
    if (row.type != name) continue;
    NEREID_TRY(const auto architectures, given(root, "architectures"));
    if (architectures) {
      NEREID_TRY(const size_t count, architectures->size(16));
      if (count != 1 || architectures->item(0).json() != std::string(row.architecture))
        return architectures->expected(fmt::format(
            "[\"{}\"], got {}", row.architecture,
            architectures->json().dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 100)));
    }
    return row.family;
  }
  return type.expected("one of qwen3, qwen2, llama");
}

}  // namespace

std::string_view model_type(Family family) { return family_row(family).type; }

int64_t Config::parameter_count() const {
  const int64_t queries = heads * head_dim, pairs = key_value_heads * head_dim;
  int64_t layer =
      hidden_size * (2 * queries + 2 * pairs) + 3 * hidden_size * intermediate_size + 2 * hidden_size;
  if (query_key_norm()) layer += 2 * head_dim;
  if (attention_bias) layer += queries + 2 * pairs;
  if (output_bias()) layer += hidden_size;
  if (mlp_bias) layer += 2 * intermediate_size + hidden_size;
  return layers * layer + hidden_size + vocab_size * hidden_size * (tie_word_embeddings ? 1 : 2);
}

Result<Config> parse_config(const Json& document, std::string_view what) {
  const JsonField root(document, what);
  Config config;
  NEREID_TRY(config.family, read_family(root));
  constexpr int64_t kWidest = int64_t{1} << 20;
  NEREID_TRY(config.vocab_size, count_at(root, "vocab_size", std::nullopt, kMaxTokens));
  NEREID_TRY(config.hidden_size, count_at(root, "hidden_size", std::nullopt, kWidest));
  NEREID_TRY(config.intermediate_size, count_at(root, "intermediate_size", std::nullopt, kWidest));
  NEREID_TRY(config.layers, count_at(root, "num_hidden_layers", std::nullopt, 4096));
  NEREID_TRY(config.heads, count_at(root, "num_attention_heads", std::nullopt, 4096));
  NEREID_TRY(config.key_value_heads, count_at(root, "num_key_value_heads", config.heads, 4096));
  NEREID_TRY(config.max_position_embeddings,
             count_at(root, "max_position_embeddings", std::nullopt, kMaxTokens));
  if (config.heads % config.key_value_heads != 0)
    return root.expected(
        fmt::format("num_attention_heads that are a multiple of num_key_value_heads, not {} and {}",
                    config.heads, config.key_value_heads));
  // transformers: Qwen3's heads are 128 wide by default, the others' hidden_size / heads.
  std::optional<int64_t> head_dim;
  if (config.family == Family::kQwen3)
    head_dim = 128;
  else if (config.hidden_size % config.heads == 0)
    head_dim = config.hidden_size / config.heads;
  NEREID_TRY(config.head_dim, count_at(root, "head_dim", head_dim, 4096));
  if (config.head_dim % 2 != 0)
    return root.expected(fmt::format("an even head_dim, not {}", config.head_dim));

  NEREID_TRY(config.rms_norm_eps, number_at(root, "rms_norm_eps", 1e-6, 0));
  NEREID_TRY(config.initializer_range, number_at(root, "initializer_range", 0.02, 0));
  NEREID_TRY(config.tie_word_embeddings, flag_at(root, "tie_word_embeddings", false));
  NEREID_TRY(config.attention_bias, flag_at(root, "attention_bias", config.family == Family::kQwen2));
  if (config.family == Family::kQwen2 && !config.attention_bias)
    return root.expected(
        "an attention_bias that is absent or true: Qwen2's queries, keys and values have one");
  NEREID_TRY(config.mlp_bias, flag_at(root, "mlp_bias", false));
  if (config.mlp_bias && config.family != Family::kLlama) return root.expected("no mlp_bias");
  NEREID_TRY_STATUS(read_rope(root, config));
  NEREID_TRY_STATUS(refuse_what_is_not_implemented(root, config.layers));
  NEREID_TRY(config.dtype, read_dtype(root));
  NEREID_TRY(config.bos_token_id, token_at(root, "bos_token_id", config.vocab_size));
  NEREID_TRY(config.pad_token_id, token_at(root, "pad_token_id", config.vocab_size));
  NEREID_TRY(config.eos_token_ids, tokens_at(root, "eos_token_id", config.vocab_size));
  return config;
}

Result<Config> read_config(const std::filesystem::path& file) {
  NEREID_TRY(const std::string text, read_file(file, size_t{16} << 20));
  NEREID_TRY(const Json document, parse_json(text, file.string()));
  return parse_config(document, file.string());
}

namespace {

Json tokens_json(const std::vector<int64_t>& tokens) {
  if (tokens.empty()) return nullptr;
  return tokens.size() == 1 ? Json(tokens[0]) : Json(tokens);
}
Json token_json(const std::optional<int64_t>& token) { return token ? Json(*token) : Json(nullptr); }

Json scaling_json(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScaling::Kind::kDefault:
      return nullptr;
    case RopeScaling::Kind::kLinear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case RopeScaling::Kind::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
    case RopeScaling::Kind::kYarn: {
      Json json = {{"rope_type", "yarn"},
                   {"factor", scaling.factor},
                   {"original_max_position_embeddings", scaling.original_max_position_embeddings},
                   {"beta_fast", scaling.beta_fast},
                   {"beta_slow", scaling.beta_slow},
                   {"truncate", scaling.truncate}};
      if (scaling.attention_factor) json["attention_factor"] = *scaling.attention_factor;
      if (scaling.mscale) json["mscale"] = *scaling.mscale;
      if (scaling.mscale_all_dim) json["mscale_all_dim"] = *scaling.mscale_all_dim;
      return json;
    }
  }
  NEREID_CHECK(false, "a kind of scaling, got {}", static_cast<int>(scaling.kind));
}

}  // namespace

Json to_json(const Config& config) {
  const auto& row = family_row(config.family);
  Json json = {
      {"architectures", {row.architecture}},
      {"model_type", row.type},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"num_key_value_heads", config.key_value_heads},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"max_position_embeddings", config.max_position_embeddings},
      {"rms_norm_eps", config.rms_norm_eps},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", scaling_json(config.rope_scaling)},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"attention_dropout", 0.0},
      {"initializer_range", config.initializer_range},
      {"torch_dtype", torch_name(config.dtype)},
      {"use_cache", true},
      {"bos_token_id", token_json(config.bos_token_id)},
      {"pad_token_id", token_json(config.pad_token_id)},
      {"eos_token_id", tokens_json(config.eos_token_ids)},
  };
  if (config.family != Family::kQwen2) json["attention_bias"] = config.attention_bias;
  if (config.family == Family::kLlama) json["mlp_bias"] = config.mlp_bias;
  if (config.family != Family::kLlama) json["use_sliding_window"] = false;
  return json;
}

Result<GenerationConfig> read_generation_config(const std::filesystem::path& folder, const Config& config) {
  GenerationConfig generation{.bos_token_id = config.bos_token_id,
                              .pad_token_id = config.pad_token_id,
                              .eos_token_ids = config.eos_token_ids};
  const auto file = folder / "generation_config.json";
  std::error_code absent;
  if (!std::filesystem::exists(file, absent)) return generation;
  NEREID_TRY(const std::string text, read_file(file, size_t{16} << 20));
  NEREID_TRY(const Json document, parse_json(text, file.string()));
  const std::string named = file.string();  // a field refers to its name
  const JsonField root(document, named);
  NEREID_TRY(const auto bos, token_at(root, "bos_token_id", config.vocab_size));
  NEREID_TRY(const auto pad, token_at(root, "pad_token_id", config.vocab_size));
  NEREID_TRY(const auto eos, tokens_at(root, "eos_token_id", config.vocab_size));
  if (bos) generation.bos_token_id = bos;
  if (pad) generation.pad_token_id = pad;
  if (!eos.empty()) generation.eos_token_ids = eos;
  NEREID_TRY(generation.temperature, optional_number_at(root, "temperature"));
  NEREID_TRY(generation.top_p, optional_number_at(root, "top_p"));
  NEREID_TRY(const auto top_k, given(root, "top_k"));
  if (top_k) {
    NEREID_TRY(generation.top_k, top_k->integer(0, kMaxTokens));
  }
  NEREID_TRY(const auto draws, given(root, "do_sample"));
  if (draws) {
    NEREID_TRY(const bool drawn, draws->boolean());
    if (!drawn) generation.temperature = 0;
  }
  NEREID_TRY(const auto longest, given(root, "max_new_tokens"));
  if (longest) {
    NEREID_TRY(generation.max_new_tokens, longest->integer(1, kMaxTokens));
  }
  NEREID_TRY(const auto sizes, given(root, "complete_sizes"));
  if (sizes) {
    NEREID_TRY(generation.complete_sizes, sizes->boolean());
  }
  return generation;
}

Json generation_json(const Config& config) {
  Json json = {{"_from_model_config", true}};
  if (config.bos_token_id) json["bos_token_id"] = *config.bos_token_id;
  if (config.pad_token_id) json["pad_token_id"] = *config.pad_token_id;
  if (!config.eos_token_ids.empty()) json["eos_token_id"] = tokens_json(config.eos_token_ids);
  return json;
}

}  // namespace nereid::lm
