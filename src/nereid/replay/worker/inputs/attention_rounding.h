// Attention whose probabilities are rounded before they meet the values.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// The operands of scaled_dot_product_attention, without dropout: query [..., L, E], key [..., S, E], value
// [..., S, V], all in float64, and a mask that broadcasts to [..., L, S]. `grouped`: each head of key and
// value serves several of the query.
struct Attention {
  at::Tensor query, key, value, mask = {};
  bool causal = false, grouped = false;
  std::optional<double> scale = {};
};

// Adds to `made` (float64 [..., L, V], the attention's result) what it moves by where the probabilities are
// rounded to `was`. Each row is rounded at a scale of its own, drawn from [1, 2): a kernel divides by the sum
// before or after, and by the largest number of a block or of the row, which decides how fine a probability's
// neighbours are. All elements of a row share these errors. Heads are computed
// together as long as none of their operands and probabilities has more elements than `together`.
void round_probabilities(const at::Tensor& made, const Attention& attention, trace::DType was,
                         at::Generator generator, int64_t together = int64_t{1} << 24);

}  // namespace nereid::replay
