#include "nereid/lm/engine/runner/host_model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

// Products of fewer multiplications are not worth waking a thread for.
constexpr size_t kWorthSharing = size_t{6} << 20;
constexpr size_t kColumnsAtOnce = 64;

HostNumbers numbers(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.const_data_ptr(), tensor.scalar_type() == at::kBFloat16};
}

}  // namespace

bool HostModel::takes(const lm::Weights& weights) {
  const auto type = weights.flat.scalar_type();
  return weights.flat.is_cpu() && (type == at::kFloat || type == at::kBFloat16);
}

// x: [rows, depth]; weights: [columns, depth]; bias: [columns], or undefined; out: [rows, columns].
void HostModel::products(const float* x, size_t rows, size_t depth, const at::Tensor& weights,
                         const at::Tensor& bias, float* out) {
  const auto columns = static_cast<size_t>(weights.size(0));
  const HostNumbers all = numbers(weights);
  if (rows * depth * columns < kWorthSharing || pool_.threads() == 1) {
    host_products(x, rows, depth, all, columns, out, columns);
  } else {
    const size_t pieces = (columns + kColumnsAtOnce - 1) / kColumnsAtOnce;
    pool_.parallel_for(static_cast<int64_t>(pieces), [&](int64_t piece, int) {
      const size_t first = static_cast<size_t>(piece) * kColumnsAtOnce;
      host_products(x, rows, depth, all.from(first * depth), std::min(kColumnsAtOnce, columns - first),
                    out + first, columns);
    });
  }
  if (!bias.defined()) return;
  added_.resize(columns);
  host_read(numbers(bias), columns, added_.data());
  for (size_t row = 0; row < rows; ++row) host_add(added_.data(), columns, out + row * columns);
}

// Each token's cosines and sines: [tokens, head_dim / 2].
void HostModel::rotations(const Step& step) {
  const auto half = static_cast<size_t>(weights_->config.head_dim / 2);
  const float* frequencies = weights_->rope_frequencies.const_data_ptr<float>();
  const auto factor = static_cast<float>(weights_->rope_factor);
  cosines_.resize(step.tokens.size() * half), sines_.resize(step.tokens.size() * half);
  for (size_t t = 0; t < step.tokens.size(); ++t)
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(step.positions[t]) * frequencies[i];
      cosines_[t * half + i] = std::cos(angle) * factor, sines_[t * half + i] = std::sin(angle) * factor;
    }
}

// heads_: [tokens, heads + 2 * key_value_heads, head_dim], what a layer projects. Queries and keys are normed
// and turned, keys and values stored; then every query attends to what its sequence's blocks hold up to its
// own place: seen_, [tokens, heads, head_dim].
void HostModel::attend(const Step& step, int64_t index, KvCache& cache) {
  const auto& config = weights_->config;
  const auto& layer = weights_->layers[static_cast<size_t>(index)];
  const auto dim = static_cast<size_t>(config.head_dim), heads = static_cast<size_t>(config.heads),
             shared = static_cast<size_t>(config.key_value_heads);
  const size_t width = (heads + 2 * shared) * dim, half = dim / 2, place = shared * dim;
  const auto eps = static_cast<float>(config.rms_norm_eps);
  float* keys = cache.keys.select(0, index).data_ptr<float>();
  float* values = cache.values.select(0, index).data_ptr<float>();
  for (size_t t = 0; t < step.tokens.size(); ++t) {
    float* own = heads_.data() + t * width;
    for (size_t h = 0; h < heads + shared; ++h) {
      float* head = own + h * dim;
      if (config.query_key_norm())
        host_norm(head, dim, numbers(h < heads ? layer.query_norm : layer.key_norm), eps, head);
      host_rotate(head, cosines_.data() + t * half, sines_.data() + t * half, half);
    }
    const auto slot = static_cast<size_t>(step.slots[t]);
    std::copy_n(own + heads * dim, place, keys + slot * place);
    std::copy_n(own + heads * dim + place, place, values + slot * place);
  }
  const auto block_size = static_cast<size_t>(cache.block_size());
  std::vector<std::pair<size_t, size_t>> queries;  // (sequence, token)
  for (size_t s = 0; s < step.sequences(); ++s)
    for (auto t = static_cast<size_t>(step.starts[s]); t < static_cast<size_t>(step.starts[s + 1]); ++t)
      queries.emplace_back(s, t);
  const auto attend_one = [&](int64_t q, int thread) {
    const auto [s, t] = queries[static_cast<size_t>(q)];
    const size_t behind =
        static_cast<size_t>(step.starts[s + 1]) - 1 - t;  // tokens of its sequence that it does not see
    const size_t seen = static_cast<size_t>(step.lengths[s]) - behind;
    Floats& scores = scores_[static_cast<size_t>(thread)];
    if (scores.size() < 4 * seen) scores.resize(4 * (seen + 256));
    const size_t group = heads / shared;
    for (size_t g = 0; g < shared; ++g) {
      const size_t offset = g * dim;
      const HostBlocks key{keys + offset, step.blocks[s].data(), block_size, block_size * place, place};
      const HostBlocks value{values + offset, step.blocks[s].data(), block_size, block_size * place, place};
      host_attend(heads_.data() + t * width + g * group * dim, group, dim, seen, key, value,
                  1 / std::sqrt(static_cast<float>(dim)), scores.data(),
                  seen_.data() + (t * heads + g * group) * dim);
    }
  };
  const auto max_seen = static_cast<size_t>(*std::max_element(step.lengths.begin(), step.lengths.end()));
  if (queries.size() * max_seen * heads * dim < kWorthSharing || pool_.threads() == 1)
    for (size_t q = 0; q < queries.size(); ++q) attend_one(static_cast<int64_t>(q), 0);
  else
    pool_.parallel_for(static_cast<int64_t>(queries.size()), attend_one, 4);
}

at::Tensor HostModel::forward(const Step& step, KvCache& cache) {
  const auto& config = weights_->config;
  const size_t tokens = step.tokens.size(), hidden = static_cast<size_t>(config.hidden_size),
               inner = static_cast<size_t>(config.intermediate_size);
  const auto dim = static_cast<size_t>(config.head_dim), heads = static_cast<size_t>(config.heads);
  const size_t width = (heads + 2 * static_cast<size_t>(config.key_value_heads)) * dim;
  const auto eps = static_cast<float>(config.rms_norm_eps);
  hidden_.resize(tokens * hidden), normed_.resize(tokens * hidden), heads_.resize(tokens * width),
      seen_.resize(tokens * heads * dim);
  gate_up_.resize(tokens * 2 * inner), gated_.resize(tokens * inner);
  scores_.resize(static_cast<size_t>(pool_.threads()));
  rotations(step);
  const HostNumbers embedding = numbers(weights_->embedding);
  for (size_t t = 0; t < tokens; ++t)
    host_read(embedding.from(static_cast<size_t>(step.tokens[t]) * hidden), hidden,
              hidden_.data() + t * hidden);
  const auto norm_all = [&](const at::Tensor& weight) {
    for (size_t t = 0; t < tokens; ++t)
      host_norm(hidden_.data() + t * hidden, hidden, numbers(weight), eps, normed_.data() + t * hidden);
  };
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto& layer = weights_->layers[static_cast<size_t>(i)];
    norm_all(layer.input_norm);
    products(normed_.data(), tokens, hidden, layer.query_key_value, layer.query_key_value_bias,
             heads_.data());
    attend(step, i, cache);
    products(seen_.data(), tokens, heads * dim, layer.output, layer.output_bias, normed_.data());
    host_add(normed_.data(), tokens * hidden, hidden_.data());
    norm_all(layer.post_norm);
    products(normed_.data(), tokens, hidden, layer.gate_up, layer.gate_up_bias, gate_up_.data());
    for (size_t t = 0; t < tokens; ++t) {
      const float* both = gate_up_.data() + t * 2 * inner;
      host_gate(both, both + inner, inner, gated_.data() + t * inner);
    }
    products(gated_.data(), tokens, inner, layer.down, layer.down_bias, normed_.data());
    host_add(normed_.data(), tokens * hidden, hidden_.data());
  }
  // Of the tokens whose logits are wanted alone.
  const size_t wanted = step.wanted.size();
  for (size_t w = 0; w < wanted; ++w)
    host_norm(hidden_.data() + static_cast<size_t>(step.wanted[w]) * hidden, hidden, numbers(weights_->norm),
              eps, normed_.data() + w * hidden);
  auto logits = at::empty({static_cast<int64_t>(wanted), config.vocab_size}, at::TensorOptions(at::kFloat));
  products(normed_.data(), wanted, hidden, weights_->head, {}, logits.data_ptr<float>());
  return logits;
}

}  // namespace nereid::lm
