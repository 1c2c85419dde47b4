#include "nereid/replay/worker/inputs/attention_rounding.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

// Elements first to first + count of the first of `dims` dimensions; a size of one, or none, broadcasts.
at::Tensor part(const at::Tensor& operand, int64_t dims, int64_t first, int64_t count) {
  if (!operand.defined() || operand.dim() < dims || operand.size(0) == 1) return operand;
  return operand.narrow(0, first, count);
}

void round_heads(const at::Tensor& made, const Attention& attention, trace::DType was,
                 const at::Generator& generator) {
  // With the identity as values, the result is the probabilities.
  const auto& [query, key, value, mask, causal, grouped, scale] = attention;
  const auto heads = made.numel() / (made.size(-2) * made.size(-1));
  const auto heads_of = [&](const at::Tensor& operand) {
    auto sizes = made.sizes().vec();
    sizes[sizes.size() - 2] = operand.size(-2), sizes.back() = operand.size(-1);
    return operand.expand(sizes).reshape({1, heads, operand.size(-2), operand.size(-1)});
  };
  const auto keys = key.size(-2);
  const auto identity = at::eye(keys, key.options());
  std::optional<at::Tensor> masked;
  if (mask.defined()) masked = heads_of(mask.dim() < 2 ? mask.expand({1, keys}) : mask);
  if (masked) masked = masked->expand({-1, -1, query.size(-2), keys});
  const auto probabilities = at::scaled_dot_product_attention(heads_of(query), heads_of(key),
                                                              heads_of(identity), masked, 0.0, causal, scale)
                                 .squeeze(0);  // [heads, L, S]
  const auto scales = at::rand({heads, query.size(-2), 1}, generator, options_of(made, c10::kDouble)).exp2_();
  const auto rounded =
      probabilities.mul(scales).to(scalar_type(was)).to(c10::kDouble).div_(scales).sub_(probabilities);
  // What is masked altogether, or beyond all numbers, stays what it is.
  made.add_(at::bmm(rounded, heads_of(value).squeeze(0)).nan_to_num_(0, 0, 0).view(made.sizes()));
}

// As many heads together as may be: recursion over the leading dimensions.
void round_part(const at::Tensor& made, const Attention& attention, trace::DType was,
                const at::Generator& generator, int64_t together) {
  const auto dims = made.dim();
  const auto rows = made.size(-2), keys = attention.key.size(-2);
  const auto widest = std::max({keys, attention.query.size(-1), made.size(-1)});
  const auto head = std::max(rows, keys) * widest, heads = made.numel() / (rows * made.size(-1));
  if (dims == 2 || heads * head <= together) return round_heads(made, attention, was, generator);
  const auto count = std::clamp<int64_t>(together / (heads / made.size(0) * head), 1, made.size(0));
  for (int64_t first = 0; first < made.size(0); first += count) {
    const auto size = std::min(count, made.size(0) - first);
    const auto those = [&](const at::Tensor& operand) {
      const auto taken = part(operand, dims, first, size);
      // One alone: its dimension goes, and the next may be too large as well.
      return count > 1 || !taken.defined() || taken.dim() < dims ? taken : taken.select(0, 0);
    };
    auto of = attention;
    of.query = those(attention.query), of.key = those(attention.key);
    of.value = those(attention.value), of.mask = those(attention.mask);
    round_part(those(made), of, was, generator, together);
  }
}

// Heads of the query that share one of key and value lie in a dimension of their own, which broadcasts there.
void split_groups(at::Tensor& made, Attention& attention) {
  const auto heads = made.size(-3), shared = attention.key.size(-3);
  const auto split = [&](const at::Tensor& operand) {
    if (!operand.defined() || operand.dim() < 3) return operand;
    return operand.size(-3) == heads ? operand.unflatten(-3, {shared, heads / shared})
                                     : operand.unsqueeze(-3);
  };
  made = made.unflatten(-3, {shared, heads / shared});
  attention.query = split(attention.query), attention.mask = split(attention.mask);
  attention.key = attention.key.unsqueeze(-3), attention.value = attention.value.unsqueeze(-3);
}

}  // namespace

void round_probabilities(const at::Tensor& made, const Attention& attention, trace::DType was,
                         at::Generator generator, int64_t together) {
  if (made.scalar_type() != c10::kDouble || made.dim() < 2 || made.numel() == 0) return;
  if (attention.key.size(-2) == 0) return;
  if (was == trace::DType::kF64) return;  // they are
  auto result = made;
  auto of = attention;
  if (of.grouped && made.dim() > 2 && of.key.size(-3) != made.size(-3)) split_groups(result, of);
  round_part(result, of, was, generator_on(made, generator), together);
}

}  // namespace nereid::replay
