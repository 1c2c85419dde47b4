// A model's parameters as tensors: views of one flat buffer, loaded from and saved to checkpoints that
// transformers reads.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/checkpoint/parameters.h"
#include "nereid/lm/decoder/operators.h"

namespace nereid::lm {

// Shapes are those of Role in parameters.h; what a family does not have is undefined.
struct LayerWeights {
  at::Tensor input_norm, post_norm;
  at::Tensor query, key, value, output;
  at::Tensor query_bias, key_bias, value_bias, output_bias;
  at::Tensor query_norm, key_norm;
  at::Tensor gate, up, down;
  at::Tensor gate_bias, up_bias, down_bias;
  // Over the same memory: what forwards use.
  at::Tensor query_key_value;       // [(heads + 2 * key_value_heads) * head_dim, hidden]
  at::Tensor query_key_value_bias;  // [(heads + 2 * key_value_heads) * head_dim]
  at::Tensor gate_up;               // [2 * intermediate, hidden]
  at::Tensor gate_up_bias;          // [2 * intermediate]
};

struct Weights {
  Config config;
  ParameterLayout layout;
  at::Tensor flat;                     // [layout.elements]; the gaps are zero
  std::vector<at::Tensor> parameters;  // as in layout.parameters: leaves that share `flat`'s memory
  at::Tensor embedding;                // [vocab, hidden]
  std::vector<LayerWeights> layers;
  at::Tensor norm;              // [hidden]
  at::Tensor head;              // [vocab, hidden]: `embedding` itself where they are tied
  at::Tensor rope_frequencies;  // [head_dim / 2], float32, on the device; positions times these are angles
  double rope_factor = 1;       // on cosines and sines
  std::shared_ptr<Operators> operators;  // null: PyTorch's
};

at::ScalarType scalar_type(Dtype dtype);  // of kF32, kBF16, kF16 and the like; checked
Dtype dtype_of(at::ScalarType type);

// Zeros, in config.dtype.
Weights make_weights(const Config& config, at::Device device);
// Normal draws with config.initializer_range (norms one, biases zero): the same for a seed on every device.
void initialize(Weights& weights, uint64_t seed);
// All parameters become leaves that gather gradients, and so does what is joined of them. The gradients are
// views of one buffer, laid out as `flat`, which is the result: zeros, in the weights' type.
at::Tensor require_gradients(Weights& weights);

// Loads config.json and the tensors that it asks for, converted to `dtype` (the checkpoint's own where
// absent). Errors (blamed on the input) name the file, the tensor, what was expected and what came; a tensor
// that the model has no place for is one.
Result<Weights> load_weights(const std::filesystem::path& folder, at::Device device,
                             std::optional<Dtype> dtype = {});
// Loads a checkpoint of the same model over these, in place: captured CUDA graphs see the new values.
Status load_weights_into(const std::filesystem::path& folder, Weights& weights);

// A checkpoint's folder's files that belong to its tokenizer, its prompts among them. Those that are there.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder);

struct SaveOptions {
  std::optional<Dtype> dtype = {};  // the weights' own where absent
  uint64_t max_shard_bytes = 5'000'000'000;
  // Copied along as they are: a tokenizer's files.
  std::vector<std::filesystem::path> also = {};
};
// Writes a checkpoint that transformers loads. The folder appears whole or not at all; it must not exist, or
// be empty.
Status save_weights(const Weights& weights, const std::filesystem::path& folder,
                    const SaveOptions& options = {});

}  // namespace nereid::lm
