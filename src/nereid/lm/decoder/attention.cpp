#include "nereid/lm/decoder/attention.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "nereid/base/check.h"
#include "nereid/lm/decoder/device.h"

namespace nereid::lm {

at::Tensor attend_causally(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const int64_t queries = query.size(0), keys = key.size(0);
  NEREID_CHECK(keys >= queries, "at least as many keys as queries, got {} and {}", keys, queries);
  const auto heads_first = [](const at::Tensor& x) {
    return x.transpose(0, 1).unsqueeze(0);
  };  // [1, heads, length, head_dim]
  std::optional<at::Tensor> mask;
  // PyTorch's own causal mask is aligned at the first key, ours at the last.
  if (queries > 1 && keys > queries)
    mask = at::ones({queries, keys}, query.options().dtype(at::kBool)).tril(keys - queries);
  const auto result = at::scaled_dot_product_attention(
      heads_first(query), heads_first(key), heads_first(value), mask, 0.0,
      /*is_causal=*/queries > 1 && !mask, 1 / std::sqrt(static_cast<double>(query.size(2))),
      /*enable_gqa=*/query.size(1) != key.size(1));
  return result.squeeze(0).transpose(0, 1);
}

bool flash_takes(const at::Tensor& query) {
  return query.is_cuda() && (query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf) &&
         query.size(2) % 8 == 0 && query.size(2) <= 256;
}

PackedAttention::PackedAttention(std::vector<int32_t> cumulative, at::Device device)
    : cumulative_(std::move(cumulative)), device_(device) {
  NEREID_CHECK(!cumulative_.empty() && cumulative_[0] == 0, "cumulative lengths that begin with 0");
  for (size_t i = 1; i < cumulative_.size(); ++i) {
    NEREID_CHECK(cumulative_[i] >= cumulative_[i - 1],
                 "cumulative lengths that do not decrease, got {} after {}", cumulative_[i],
                 cumulative_[i - 1]);
    longest_ = std::max<int64_t>(longest_, cumulative_[i] - cumulative_[i - 1]);
  }
}

const Documents* PackedAttention::documents() {
  if (documents_.starts.defined()) return &documents_;
  std::vector<int32_t> starts, ends;
  for (size_t i = 1; i < cumulative_.size(); ++i) {
    starts.resize(static_cast<size_t>(cumulative_[i]), cumulative_[i - 1]);
    ends.resize(static_cast<size_t>(cumulative_[i]), cumulative_[i]);
  }
  documents_ = {sent_to(starts, device_), sent_to(ends, device_)};
  return &documents_;
}

at::Tensor PackedAttention::attend(int64_t, const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value) {
  NEREID_CHECK(cumulative_.back() == query.size(0), "{} tokens, as the cumulative lengths say, got {}",
               cumulative_.back(), query.size(0));
  if (flash_takes(query)) {
    if (!on_device_.defined()) on_device_ = sent_to(cumulative_, device_);
    return std::get<0>(at::_flash_attention_forward(
        query, key, value, on_device_, on_device_, longest_, longest_, 0.0, /*is_causal=*/true,
        /*return_debug_mask=*/false, 1 / std::sqrt(static_cast<double>(query.size(2)))));
  }
  std::vector<at::Tensor> results;
  for (size_t i = 0; i + 1 < cumulative_.size(); ++i) {
    const int64_t begin = cumulative_[i], end = cumulative_[i + 1];
    if (begin == end) continue;
    results.push_back(
        attend_causally(query.slice(0, begin, end), key.slice(0, begin, end), value.slice(0, begin, end)));
  }
  return results.empty() ? query : at::cat(results, 0);
}

}  // namespace nereid::lm
