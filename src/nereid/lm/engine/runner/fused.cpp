#include "nereid/lm/engine/runner/fused.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "nereid/base/check.h"
#include "nereid/lm/decoder/decoder.h"

namespace nereid::lm {
namespace {

// Of decode_attention's programs, as many as keep an H200's 132 processors busy.
constexpr int64_t kEnoughPrograms = 528;
constexpr int64_t kSplits[] = {1, 2, 4, 8, 16, 32};
constexpr int64_t kGateTile = 1024;

// The kernels' numbers: decode_attention for each number of splits, then combine_splits for each but one.
constexpr size_t kCombine = std::size(kSplits);
constexpr size_t kPrepare = kCombine + std::size(kSplits) - 1, kAddAndNorm = kPrepare + 1,
                 kGate = kAddAndNorm + 1;

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

bool FusedModel::takes(const lm::Config& config) {
  return config.head_dim % 8 == 0 && config.head_dim <= 256;
}

std::vector<KernelRequest> FusedModel::requests() const {
  const std::string element = element_name(config_.dtype);
  const int64_t dim = config_.head_dim, group = config_.heads / config_.key_value_heads;
  std::vector<KernelRequest> all;
  for (const int64_t splits : kSplits)
    all.push_back({"decode_attention",
                   element,
                   {{"HEADS", config_.heads},
                    {"KEY_HEADS", config_.key_value_heads},
                    {"DIM", dim},
                    {"DIM_PADDED", std::max<int64_t>(padded(dim), 16)},
                    {"GROUP_PADDED", std::max<int64_t>(padded(group), 16)},
                    {"BLOCK_SIZE", block_size_},
                    {"TILE", 64},
                    {"SPLITS", splits}}});
  for (const int64_t splits : kSplits)
    if (splits > 1)
      all.push_back(
          {"combine_splits",
           element,
           {{"DIM", dim}, {"DIM_PADDED", padded(dim)}, {"SPLITS", splits}, {"SPLITS_PADDED", splits}}});
  all.push_back({"prepare_heads",
                 element,
                 {{"HEADS", config_.heads},
                  {"KEY_HEADS", config_.key_value_heads},
                  {"DIM", dim},
                  {"HALF_PADDED", padded(dim / 2)},
                  {"NORMED", config_.query_key_norm()}},
                 1});
  all.push_back({"add_and_norm",
                 element,
                 {{"WIDTH", config_.hidden_size}, {"WIDTH_PADDED", padded(config_.hidden_size)}},
                 8});
  all.push_back({"gate", element, {{"WIDTH", config_.intermediate_size}, {"TILE", kGateTile}}});
  return all;
}

Result<std::unique_ptr<FusedModel>> FusedModel::create(const lm::Config& config, int64_t block_size,
                                                       Launcher& launcher, const Installation& installation) {
  NEREID_CHECK(takes(config), "heads that there are kernels for, got {} dimensions", config.head_dim);
  std::unique_ptr<FusedModel> fused(new FusedModel(config, block_size, launcher));
  NEREID_TRY(auto kernels, build_kernels(installation, launcher.arch(), fused->requests()));
  NEREID_TRY(fused->first_, launcher.load(std::move(kernels)));
  return fused;
}

at::Tensor FusedModel::attend(const at::Tensor& given, const at::Tensor& keys, const at::Tensor& values,
                              const at::Tensor& tables, const at::Tensor& lengths) {
  const auto query = given.contiguous();
  const int64_t sequences = query.size(0), heads = config_.heads, dim = config_.head_dim;
  size_t which = 0;
  while (which + 1 < std::size(kSplits) &&
         sequences * config_.key_value_heads * kSplits[which] < kEnoughPrograms)
    ++which;
  const int64_t splits = kSplits[which];
  auto result = at::empty_like(query);
  const auto floats = query.options().dtype(at::kFloat);
  // Unused by a kernel of one split, which takes them all the same.
  const auto partial = at::empty({splits > 1 ? sequences : 1, heads, splits, dim}, floats),
             logsums = at::empty({splits > 1 ? sequences : 1, heads, splits}, floats);
  const auto scale = static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
  launch(which, {sequences, config_.key_value_heads, splits},
         {query, keys, values, tables, lengths, result, partial, logsums,
          static_cast<int32_t>(tables.size(1)), scale});
  if (splits > 1) launch(kCombine + which - 1, {sequences * heads, 1, 1}, {partial, logsums, result});
  return result;
}

at::Tensor FusedModel::add_and_norm(const at::Tensor& residual, const at::Tensor& added,
                                    const at::Tensor& weight) {
  auto normed = at::empty_like(residual);
  launch(kAddAndNorm, {residual.size(0), 1, 1},
         {residual, added, weight, normed, static_cast<float>(config_.rms_norm_eps)});
  return normed;
}

at::Tensor FusedModel::hidden_states(const lm::Weights& weights, const at::Tensor& tokens,
                                     const at::Tensor& positions, const at::Tensor& slots, KvCache& cache,
                                     StoredAttention& attention) {
  const int64_t count = tokens.size(0), all_heads = config_.heads + 2 * config_.key_value_heads;
  const auto rotation = lm::rotation_at(weights, positions);
  const auto epsilon = static_cast<float>(config_.rms_norm_eps);
  const auto residual = at::embedding(weights.embedding, tokens);
  at::Tensor normed =
      at::rms_norm(residual, {config_.hidden_size}, weights.layers[0].input_norm, config_.rms_norm_eps);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto& layer = weights.layers[static_cast<size_t>(i)];
    const auto joined = at::linear(normed, layer.query_key_value, optional(layer.query_key_value_bias));
    const auto query = at::empty({count, config_.heads, config_.head_dim}, joined.options());
    const auto& query_norm = layer.query_norm.defined()
                                 ? layer.query_norm
                                 : layer.input_norm;  // not looked at where there is none
    const auto& key_norm = layer.key_norm.defined() ? layer.key_norm : layer.input_norm;
    launch(kPrepare, {count, all_heads, 1},
           {joined, rotation.cosines, rotation.sines, query_norm, key_norm, slots, query,
            cache.keys.select(0, i), cache.values.select(0, i), epsilon});
    const auto seen = attention.attend_stored(i, query).reshape({count, -1});
    normed =
        add_and_norm(residual, at::linear(seen, layer.output, optional(layer.output_bias)), layer.post_norm);
    const auto gate_and_up = at::linear(normed, layer.gate_up, optional(layer.gate_up_bias));
    const auto gated = at::empty({count, config_.intermediate_size}, gate_and_up.options());
    launch(kGate, {count, (config_.intermediate_size + kGateTile - 1) / kGateTile, 1}, {gate_and_up, gated});
    const auto& next_norm =
        i + 1 < config_.layers ? weights.layers[static_cast<size_t>(i) + 1].input_norm : weights.norm;
    normed = add_and_norm(residual, at::linear(gated, layer.down, optional(layer.down_bias)), next_norm);
  }
  return normed;
}

}  // namespace nereid::lm
