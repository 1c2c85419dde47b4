#include "nereid/lm/checkpoint/parameters.h"

namespace nereid::lm {
namespace {

class Layout {
 public:
  explicit Layout(const Config& config) : config_(config) {}

  // `joined`: right after the one before it.
  void add(Role role, int64_t layer, std::string name, std::vector<int64_t> shape, bool joined = false) {
    if (!joined) layout_.elements = (layout_.elements + kAlignment - 1) / kAlignment * kAlignment;
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    layout_.parameters.push_back(
        {.role = role,
         .layer = layer,
         .info = {.name = std::move(name), .dtype = config_.dtype, .shape = std::move(shape)},
         .offset = layout_.elements,
         .elements = elements});
    layout_.elements += elements;
  }

  void add_layer(int64_t i) {
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size, dim = config_.head_dim;
    const int64_t queries = config_.heads * dim, keys = config_.key_value_heads * dim;
    const auto layer = [&](Role role, std::string_view name, std::vector<int64_t> shape,
                           bool joined = false) {
      add(role, i, fmt::format("model.layers.{}.{}", i, name), std::move(shape), joined);
    };
    layer(Role::kInputNorm, "input_layernorm.weight", {hidden});
    layer(Role::kQuery, "self_attn.q_proj.weight", {queries, hidden});
    layer(Role::kKey, "self_attn.k_proj.weight", {keys, hidden}, true);
    layer(Role::kValue, "self_attn.v_proj.weight", {keys, hidden}, true);
    if (config_.attention_bias) {
      layer(Role::kQueryBias, "self_attn.q_proj.bias", {queries});
      layer(Role::kKeyBias, "self_attn.k_proj.bias", {keys}, true);
      layer(Role::kValueBias, "self_attn.v_proj.bias", {keys}, true);
    }
    if (config_.query_key_norm()) {
      layer(Role::kQueryNorm, "self_attn.q_norm.weight", {dim});
      layer(Role::kKeyNorm, "self_attn.k_norm.weight", {dim});
    }
    layer(Role::kOutput, "self_attn.o_proj.weight", {hidden, queries});
    if (config_.output_bias()) layer(Role::kOutputBias, "self_attn.o_proj.bias", {hidden});
    layer(Role::kPostNorm, "post_attention_layernorm.weight", {hidden});
    layer(Role::kGate, "mlp.gate_proj.weight", {inner, hidden});
    layer(Role::kUp, "mlp.up_proj.weight", {inner, hidden}, true);
    if (config_.mlp_bias) {
      layer(Role::kGateBias, "mlp.gate_proj.bias", {inner});
      layer(Role::kUpBias, "mlp.up_proj.bias", {inner}, true);
    }
    layer(Role::kDown, "mlp.down_proj.weight", {hidden, inner});
    if (config_.mlp_bias) layer(Role::kDownBias, "mlp.down_proj.bias", {hidden});
  }

  ParameterLayout finish() && { return std::move(layout_); }

 private:
  const Config& config_;
  ParameterLayout layout_;
};

}  // namespace

ParameterLayout lay_out_parameters(const Config& config) {
  Layout layout(config);
  layout.add(Role::kEmbedding, -1, "model.embed_tokens.weight", {config.vocab_size, config.hidden_size});
  for (int64_t i = 0; i < config.layers; ++i) layout.add_layer(i);
  layout.add(Role::kNorm, -1, "model.norm.weight", {config.hidden_size});
  if (!config.tie_word_embeddings)
    layout.add(Role::kHead, -1, "lm_head.weight", {config.vocab_size, config.hidden_size});
  return std::move(layout).finish();
}

bool is_layer_matrix(Role role) {
  switch (role) {
    case Role::kQuery:
    case Role::kKey:
    case Role::kValue:
    case Role::kOutput:
    case Role::kGate:
    case Role::kUp:
    case Role::kDown:
      return true;
    default:
      return false;
  }
}

}  // namespace nereid::lm
