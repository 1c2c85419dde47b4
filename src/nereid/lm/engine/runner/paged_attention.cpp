#include "nereid/lm/engine/runner/paged_attention.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

double scale_of(const at::Tensor& query) { return 1 / std::sqrt(static_cast<double>(query.size(2))); }

// cache: [blocks, block_size, key_value_heads, head_dim], as places: [blocks * block_size, key_value_heads,
// head_dim].
at::Tensor places(const at::Tensor& cache) { return cache.view({-1, cache.size(2), cache.size(3)}); }

void store(KvCache& cache, int64_t layer, const at::Tensor& slots, const at::Tensor& key,
           const at::Tensor& value) {
  places(cache.keys.select(0, layer)).index_copy_(0, slots, key);
  places(cache.values.select(0, layer)).index_copy_(0, slots, value);
}

}  // namespace

KvCache make_cache(const lm::Config& config, int64_t blocks, int64_t block_size, at::TensorOptions options) {
  const std::vector<int64_t> shape = {config.layers, blocks, block_size, config.key_value_heads,
                                      config.head_dim};
  // Zeros: what is masked is multiplied by zero, and a NaN of uninitialised memory would stay one.
  return {at::zeros(shape, options), at::zeros(shape, options)};
}

int64_t block_bytes(const lm::Config& config, int64_t block_size, at::ScalarType type) {
  return 2 * config.layers * block_size * config.key_value_heads * config.head_dim *
         static_cast<int64_t>(c10::elementSize(type));
}

at::Tensor PaddedDecode::attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                const at::Tensor& tables, const at::Tensor& lengths) {
  const int64_t sequences = query.size(0), most = tables.size(1) * keys.size(1);
  const auto gather = [&](const at::Tensor& cache) {  // [sequences, key_value_heads, most, head_dim]
    return cache.index_select(0, tables.flatten())
        .view({sequences, most, cache.size(2), cache.size(3)})
        .transpose(1, 2);
  };
  const auto mask =
      at::arange(most, lengths.options()).unsqueeze(0) < lengths.unsqueeze(1);  // [sequences, most]
  return at::scaled_dot_product_attention(query.unsqueeze(2), gather(keys), gather(values),
                                          mask.view({sequences, 1, 1, most}), 0.0, /*is_causal=*/false,
                                          scale_of(query), /*enable_gqa=*/query.size(1) != keys.size(2))
      .squeeze(2);
}

PagedAttention::PagedAttention(KvCache& cache, const Step& step, const StepTensors& tensors,
                               DecodeKernel& decode)
    : cache_(cache), step_(step), tensors_(tensors), decode_(decode) {
  std::vector<int64_t> several_tokens, one_tokens, key_slots;
  query_starts_ = key_starts_ = {0};
  const int64_t block_size = cache.block_size();
  for (size_t i = 0; i < step.sequences(); ++i) {
    const int64_t begin = step.starts[i], end = step.starts[i + 1];
    if (end == begin + 1) {
      one_.push_back(static_cast<int64_t>(i));
      one_tokens.push_back(begin);
      continue;
    }
    several_.push_back(static_cast<int64_t>(i));
    for (int64_t token = begin; token < end; ++token) several_tokens.push_back(token);
    for (int64_t key = 0; key < step.lengths[i]; ++key)
      key_slots.push_back(step.blocks[i][static_cast<size_t>(key / block_size)] * block_size +
                          key % block_size);
    query_starts_.push_back(static_cast<int32_t>(several_tokens.size()));
    key_starts_.push_back(static_cast<int32_t>(key_slots.size()));
    max_queries_ = std::max(max_queries_, end - begin);
    max_keys_ = std::max<int64_t>(max_keys_, step.lengths[i]);
  }
  const auto device = tensors.tokens.device();
  const auto on_device = [&](const auto& numbers) { return at::tensor(numbers).to(device); };
  several_tokens_ = on_device(several_tokens), one_tokens_ = on_device(one_tokens),
  one_sequences_ = on_device(one_), key_slots_ = on_device(key_slots);
  query_starts_on_device_ = on_device(query_starts_), key_starts_on_device_ = on_device(key_starts_);
}

at::Tensor PagedAttention::prefill(const at::Tensor& query, const at::Tensor& keys,
                                   const at::Tensor& values) const {
  const auto key = places(keys).index_select(0, key_slots_),
             value = places(values).index_select(0, key_slots_);
  if (lm::flash_takes(query))
    return std::get<0>(at::_flash_attention_forward(
        query, key, value, query_starts_on_device_, key_starts_on_device_, max_queries_, max_keys_, 0.0,
        /*is_causal=*/true, /*return_debug_mask=*/false, scale_of(query)));
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < several_.size(); ++i)
    results.push_back(lm::attend_causally(query.slice(0, query_starts_[i], query_starts_[i + 1]),
                                          key.slice(0, key_starts_[i], key_starts_[i + 1]),
                                          value.slice(0, key_starts_[i], key_starts_[i + 1])));
  return at::cat(results, 0);
}

at::Tensor PagedAttention::attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value) {
  store(cache_, layer, tensors_.slots, key, value);
  return attend_stored(layer, query);
}

at::Tensor PagedAttention::attend_stored(int64_t layer, const at::Tensor& query) {
  const auto keys = cache_.keys.select(0, layer), values = cache_.values.select(0, layer);
  if (several_.empty()) return decode_.attend(query, keys, values, tensors_.tables, tensors_.lengths);
  if (one_.empty()) return prefill(query, keys, values);
  auto result = at::empty_like(query);
  result.index_copy_(0, several_tokens_, prefill(query.index_select(0, several_tokens_), keys, values));
  result.index_copy_(0, one_tokens_,
                     decode_.attend(query.index_select(0, one_tokens_), keys, values,
                                    tensors_.tables.index_select(0, one_sequences_),
                                    tensors_.lengths.index_select(0, one_sequences_)));
  return result;
}

at::Tensor DecodeAttention::attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value) {
  store(cache_, layer, tensors_.slots, key, value);
  return attend_stored(layer, query);
}

at::Tensor DecodeAttention::attend_stored(int64_t layer, const at::Tensor& query) {
  return decode_.attend(query, cache_.keys.select(0, layer), cache_.values.select(0, layer), tensors_.tables,
                        tensors_.lengths);
}

}  // namespace nereid::lm
