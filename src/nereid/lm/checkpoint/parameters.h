// A decoder's parameters: which there are, how checkpoints name them, and where each is in one flat buffer.
//
// All parameters of a model are one buffer, so that an optimizer, an all-reduce or an update of an engine's
// weights is one operation. Those that one matrix product can use together are side by side without a gap:
// queries, keys and values; gate and up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/checkpoint/safetensors.h"

namespace nereid::lm {

enum class Role {
  kEmbedding,  // [vocab, hidden]
  kInputNorm,  // [hidden], and so are kPostNorm and kNorm
  kQuery,      // [heads * head_dim, hidden]
  kKey,        // [key_value_heads * head_dim, hidden], and so is kValue
  kValue,
  kOutput,  // [hidden, heads * head_dim]
  kQueryBias,
  kKeyBias,
  kValueBias,
  kOutputBias,
  kQueryNorm,  // [head_dim], and so is kKeyNorm
  kKeyNorm,
  kPostNorm,
  kGate,  // [intermediate, hidden], and so is kUp
  kUp,
  kDown,  // [hidden, intermediate]
  kGateBias,
  kUpBias,
  kDownBias,
  kNorm,
  kHead,  // [vocab, hidden]; absent where it is the embedding
};

struct Parameter {
  Role role = Role::kEmbedding;
  int64_t layer = -1;  // -1: of no layer
  TensorInfo info;     // as a checkpoint of config.dtype has it
  int64_t offset = 0;  // of its first element in the flat buffer
  int64_t elements = 0;
};

struct ParameterLayout {
  std::vector<Parameter> parameters;  // in the buffer's order
  int64_t elements = 0;  // of the buffer, with the gaps that align its parts to kAlignment elements
};

constexpr int64_t kAlignment = 128;  // 256 bytes of bfloat16

ParameterLayout lay_out_parameters(const Config& config);

// Matrices of layers: what Muon treats, and what weight decay applies to along with embedding and head.
bool is_layer_matrix(Role role);

}  // namespace nereid::lm
