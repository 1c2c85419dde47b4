#include "nereid/replay/worker/inputs/attention_rounding.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

// Index i of the first dimension where there are as many leading dimensions as `made` has; a size of one
// broadcasts.
at::Tensor part(const at::Tensor& operand, int64_t dims, int64_t i) {
  if (!operand.defined() || operand.dim() < dims) return operand;
  return operand.select(0, operand.size(0) == 1 ? 0 : i);
}

void round_head(const at::Tensor& made, const Attention& attention, trace::DType was,
                const at::Generator& generator) {
  // With the identity as values, the result is the probabilities.
  const auto& [query, key, value, mask, causal, grouped, scale] = attention;
  const auto identity = at::eye(key.size(-2), key.options());
  std::optional<at::Tensor> masked;
  if (mask.defined()) masked = mask.expand({query.size(-2), key.size(-2)});
  const auto batch = [](const at::Tensor& x) { return x.unsqueeze(0).unsqueeze(0); };
  const auto probabilities =
      at::scaled_dot_product_attention(batch(query), batch(key), batch(identity), masked, 0.0, causal, scale)
          .squeeze(0)
          .squeeze(0);
  const auto scales = at::rand({query.size(-2), 1}, generator, options_of(made, c10::kDouble)).exp2_();
  const auto rounded =
      probabilities.mul(scales).to(scalar_type(was)).to(c10::kDouble).div_(scales).sub_(probabilities);
  // What is masked altogether, or beyond all numbers, stays what it is.
  made.add_(at::mm(rounded, value).nan_to_num_(0, 0, 0));
}

// Recursion over the leading dimensions.
void round_part(const at::Tensor& made, const Attention& attention, trace::DType was,
                const at::Generator& generator) {
  const auto dims = made.dim();
  if (dims == 2) return round_head(made, attention, was, generator);
  for (int64_t i = 0; i < made.size(0); ++i) {
    auto of = attention;
    const auto shared = [&](const at::Tensor& operand) {
      const bool heads = dims == 3 && attention.grouped && operand.dim() >= dims;
      return part(operand, dims, heads ? i * operand.size(0) / made.size(0) : i);
    };
    of.query = part(attention.query, dims, i);
    of.key = shared(attention.key), of.value = shared(attention.value);
    of.mask = part(attention.mask, dims, i);
    round_part(made.select(0, i), of, was, generator);
  }
}

}  // namespace

void round_probabilities(const at::Tensor& made, const Attention& attention, trace::DType was,
                         at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || made.dim() < 2 || made.numel() == 0) return;
  if (was == trace::DType::kF64) return;  // they are
  round_part(made, attention, was, generator_on(made, generator));
}

}  // namespace nereid::replay
