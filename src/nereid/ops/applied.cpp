#include "nereid/ops/applied.h"

#include <algorithm>

namespace nereid::ops {

Applied apply(const Operator& op, const Form& form, const Shape& out,
              const std::array<int32_t, kMaxBorn>& born) {
  Applied applied{.op = &op, .form = &form, .out = out, .operands = {}, .born = born, .constants = {}};
  for (size_t s = 0; s < form.slots; ++s) applied.operands[s] = operand_shape(form.slot[s], out, born);
  return applied;
}

bool is_sound(const Applied& applied) {
  const Form& form = *applied.form;
  for (size_t d = 0; d < applied.out.rank; ++d)
    if (applied.out.dims[d] < (form.low[d] > 0 ? 2 : 1)) return false;
  for (size_t s = 0; s < form.slots; ++s)
    for (size_t d = 0; d < applied.operands[s].rank; ++d)
      if (applied.operands[s].dims[d] < 1) return false;
  if (applied.op->name == "avg_pool3d")  // PyTorch refuses a window larger than the input, padded or not
    for (size_t d = 2; d < kMaxRank; ++d)
      if (applied.operands[0].dims[d] < form.kernel) return false;
  return true;
}

int told_axis(const Applied& applied, int dim) {
  const Rule rule = applied.op->rule;
  const bool either = rule == Rule::kReduce || rule == Rule::kArgReduce || rule == Rule::kAxis || rule == Rule::kTranspose;
  const int rank = applied.operands[0].rank;
  const bool from_end = either && (applied.axes == Applied::kFromEnd || (applied.axes == Applied::kLastFromEnd && dim == rank - 1));
  return from_end ? dim - rank : dim;
}

int operand_count(const Applied& applied) {
  if (applied.op->rule == Rule::kStack) return applied.out.dims[static_cast<size_t>(applied.form->dim)];
  return applied.form->slots;
}

int group_count(const Applied& applied) {
  const int channels = applied.out.dims[1];
  for (const int groups : {32, 16, 8, 4, 2})
    if (channels % groups == 0 && channels > groups) return groups;
  return 1;
}

int64_t index_bound(const Applied& applied) {
  switch (applied.op->rule) {
    case Rule::kGather:
    case Rule::kIndexSelect:
      return applied.operands[0].dims[static_cast<size_t>(applied.form->dim)];
    case Rule::kEmbedding:
      return applied.born[0];
    case Rule::kClassLoss:
      return applied.born[1];
    default:
      return 1;
  }
}

int64_t contracted_length(const Applied& applied) {
  const bool product = applied.op->rule == Rule::kMatmul || applied.op->rule == Rule::kBmm;
  return product ? applied.born[0] : 1;
}

int spatial_axes(const Applied& applied) { return std::max(0, applied.operands[0].rank - 2); }

}  // namespace nereid::ops
