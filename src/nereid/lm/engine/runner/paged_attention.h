// Attention over keys and values that are in blocks, for inference.
#pragma once

#include <ATen/core/Tensor.h>

#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/decoder/attention.h"
#include "nereid/lm/engine/runner/step.h"

namespace nereid::lm {

// The keys and values of all layers. Block 0 belongs to no sequence: what a padded batch writes goes there.
struct KvCache {
  at::Tensor keys, values;  // [layers, blocks, block_size, key_value_heads, head_dim]

  int64_t blocks() const { return keys.size(1); }
  int64_t block_size() const { return keys.size(2); }
};
KvCache make_cache(const lm::Config& config, int64_t blocks, int64_t block_size, at::TensorOptions options);
// Of one block, keys and values of all layers.
int64_t block_bytes(const lm::Config& config, int64_t block_size, at::ScalarType type);

// A step as tensors on the device.
struct StepTensors {
  at::Tensor tokens, positions, slots;  // [tokens], int64
  at::Tensor starts;                    // [sequences + 1], int32
  at::Tensor lengths;                   // [sequences], int32
  at::Tensor tables;                    // [sequences, most blocks], int32; 0 after a sequence's own
};

// One query a sequence, over its blocks: what most of decoding's time goes to.
class DecodeKernel {
 public:
  virtual ~DecodeKernel() = default;
  // query: [sequences, heads, head_dim]; keys, values: [blocks, block_size, key_value_heads, head_dim];
  // tables: [sequences, most blocks], int32; lengths: [sequences], int32. The result is [sequences, heads,
  // head_dim].
  virtual at::Tensor attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                            const at::Tensor& tables, const at::Tensor& lengths) = 0;
};

// By PyTorch's operators alone, all sequences at once, padded to the longest table: on every device, and
// inside a graph.
class PaddedDecode : public DecodeKernel {
 public:
  at::Tensor attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& tables, const at::Tensor& lengths) override;
};

// Attention over what is in the cache already.
class StoredAttention : public lm::Attention {
 public:
  // query: [tokens, heads, head_dim], whose keys and values are stored.
  virtual at::Tensor attend_stored(int64_t layer, const at::Tensor& query) = 0;
};

// Writes a step's keys and values to their slots, then attends. `step`, `tensors`, `cache` and `decode`
// outlive it.
class PagedAttention : public StoredAttention {
 public:
  PagedAttention(KvCache& cache, const Step& step, const StepTensors& tensors, DecodeKernel& decode);
  at::Tensor attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                    const at::Tensor& value) override;
  at::Tensor attend_stored(int64_t layer, const at::Tensor& query) override;

 private:
  at::Tensor prefill(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const;

  KvCache& cache_;
  const Step& step_;
  const StepTensors& tensors_;
  DecodeKernel& decode_;
  // Of the sequences with several tokens, and of those with one: numbers of sequences, and of their tokens.
  std::vector<int64_t> several_, one_;
  at::Tensor several_tokens_, one_tokens_, one_sequences_;  // int64, on the device
  // For prefill: the slots of all keys that the sequences with several tokens see, and where each sequence's
  // begin.
  at::Tensor key_slots_;
  std::vector<int32_t> query_starts_, key_starts_;
  at::Tensor query_starts_on_device_, key_starts_on_device_;
  int64_t max_queries_ = 0, max_keys_ = 0;
};

// Decoding alone, with everything that it needs in tensors: no value is read by the host, so that a CUDA
// graph may hold it.
class DecodeAttention : public StoredAttention {
 public:
  DecodeAttention(KvCache& cache, const StepTensors& tensors, DecodeKernel& decode)
      : cache_(cache), tensors_(tensors), decode_(decode) {}
  at::Tensor attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                    const at::Tensor& value) override;
  at::Tensor attend_stored(int64_t layer, const at::Tensor& query) override;

 private:
  KvCache& cache_;
  const StepTensors& tensors_;
  DecodeKernel& decode_;
};

}  // namespace nereid::lm
