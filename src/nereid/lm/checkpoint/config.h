// config.json of the Qwen3, Qwen2 (and Qwen2.5) and Llama 3 families, as one struct.
//
// Both generations of the file are read: `rope_theta`, `rope_scaling` and `torch_dtype` as transformers 4
// writes them, and `rope_parameters` and `dtype` as transformers 5 does. Written is the older one, which both
// load. What a field would change and we do not implement (sliding windows in use, quantised weights, partial
// rotary embeddings, other activations) is an error that names it, never ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/dtype.h"

namespace nereid::lm {

enum class Family { kQwen3, kQwen2, kLlama };
std::string_view model_type(Family family);  // "qwen3", "qwen2", "llama"

// How rotary frequencies are changed for contexts longer than those of pretraining; rope.h says how.
struct RopeScaling {
  enum class Kind { kDefault, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kDefault;
  double factor = 1;                                 // all but kDefault
  int64_t original_max_position_embeddings = 0;      // kLlama3, kYarn
  double low_freq_factor = 1, high_freq_factor = 4;  // kLlama3
  double beta_fast = 32, beta_slow = 1;              // kYarn, and so are the following
  bool truncate = true;
  std::optional<double> attention_factor, mscale, mscale_all_dim;

  bool operator==(const RopeScaling&) const = default;
};

struct Config {
  Family family = Family::kQwen3;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;            // of queries
  int64_t key_value_heads = 0;  // divides `heads`
  int64_t head_dim = 0;         // even
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  RopeScaling rope_scaling = {};
  bool tie_word_embeddings = false;
  // Qwen2: of queries, keys and values, not of the output. The others: `attention_bias` means all four.
  bool attention_bias = false;
  bool mlp_bias = false;  // Llama alone
  double initializer_range = 0.02;
  Dtype dtype = Dtype::kF32;  // what the checkpoint was saved in: kF32, kBF16 or kF16
  std::optional<int64_t> bos_token_id = {}, pad_token_id = {};
  std::vector<int64_t> eos_token_ids = {};

  bool query_key_norm() const { return family == Family::kQwen3; }
  bool output_bias() const { return attention_bias && family != Family::kQwen2; }
  int64_t parameter_count() const;

  bool operator==(const Config&) const = default;
};

// `what` names the document in errors.
Result<Config> parse_config(const Json& document, std::string_view what);
Result<Config> read_config(const std::filesystem::path& file);
Json to_json(const Config& config);

// What generation_config.json says of ending and of sampling; `do_sample: false` is a temperature of 0. Where
// the file is absent, `config`'s tokens and nothing else.
struct GenerationConfig {
  std::optional<int64_t> bos_token_id = {}, pad_token_id = {};
  std::vector<int64_t> eos_token_ids = {};
  std::optional<double> temperature = {}, top_p = {};
  std::optional<int64_t> top_k = {};
  std::optional<int64_t> max_new_tokens = {};  // of an answer
  bool complete_sizes = false;                 // ours: sizes in plans are computed (lm/plan_sizes)
};
Result<GenerationConfig> read_generation_config(const std::filesystem::path& folder, const Config& config);
Json generation_json(const Config& config);

}  // namespace nereid::lm
