#include "nereid/ops/applied.h"

#include <algorithm>

namespace nereid::ops {

Applied apply(const Operator& op, const Form& form, const Shape& out,
              const std::array<int32_t, kMaxInner>& inner, const LayerOptions& details) {
  Applied applied{.op = &op, .form = &form, .out = out, .operands = {}, .inner = inner, .constants = {}};
  for (size_t s = 0; s < form.slots; ++s) applied.operands[s] = operand_shape(form.slot[s], out, inner);
  applied.bias = details.bias, applied.groups = details.groups;
  if (op.rule == Rule::kSlice || op.rule == Rule::kCat || op.rule == Rule::kPad) {
    const auto d = static_cast<size_t>(form.dim);
    const int32_t size = out.dims[d];
    Cut& cut = applied.cut = details.cut;
    int32_t &first = applied.operands[0].dims[d], &second = applied.operands[1].dims[d];
    if (!cut.given) {
      cut.part = op.name == "split" ? 1 : 0, cut.before = op.rule == Rule::kCat ? first : 0;
      cut.behind = op.rule == Rule::kPad ? size - first : size;
    } else if (op.rule == Rule::kCat) {
      first = cut.before, second = size - cut.before;
    } else if (op.rule == Rule::kPad) {
      first = size - cut.before - cut.behind;
    } else {
      first = op.name == "slice" ? cut.before + size + cut.behind : cut.parts * size;
    }
  }
  if (op.rule == Rule::kFlatten && details.cut.given) {
    applied.cut = details.cut;
    Shape& x = applied.operands[0];
    const bool three = x.rank > out.rank + 1;
    x.dims[static_cast<size_t>(form.dim)] /= details.cut.before * details.cut.behind;
    if (three) x.dims[x.rank - 2U] = details.cut.before;
    x.dims[x.rank - 1U] = details.cut.behind;
  }
  if (!has_window(op)) return applied;
  Window& window = applied.window = details.window.given() ? details.window : window_of(form, op);
  const bool transposed = is_transposed(op);
  for (size_t d = 2; d < out.rank; ++d) {
    int32_t& size = applied.operands[0].dims[d];
    if (details.window.given()) size = operand_size(window, d - 2, transposed, out.dims[d]);
    if (transposed)
      window.rest[d - 2] = static_cast<int8_t>(out.dims[d] - result_size(window, d - 2, true, size));
  }
  return applied;
}

bool is_sound(const Applied& applied) {
  const Form& form = *applied.form;
  for (size_t d = 0; d < applied.out.rank; ++d)
    if (applied.out.dims[d] < (form.low[d] > 0 ? 2 : 1) ||
        (form.high[d] < 2 && applied.out.dims[d] > (form.high[d] == 0 ? 1 : 8)))
      return false;
  for (size_t s = 0; s < form.slots; ++s)
    for (size_t d = 0; d < applied.operands[s].rank; ++d)
      if (applied.operands[s].dims[d] < 1) return false;
  if (applied.op->rule == Rule::kFlatten && applied.operands[0].elements() != applied.out.elements())
    return false;
  if (applied.op->rule == Rule::kGroupNorm && applied.out.dims[1] % group_count(applied) != 0) return false;
  if (applied.op->name == "avg_pool3d")  // PyTorch refuses a window larger than the input, padded or not
    for (size_t d = 2; d < kMaxRank; ++d)
      if (applied.operands[0].dims[d] < applied.window.kernel[d - 2]) return false;
  if (applied.op->lowering == Lowering::kConvolution &&
      (applied.operands[0].dims[1] % groups_of(applied) != 0 ||
       applied.out.dims[1] % groups_of(applied) != 0))
    return false;
  for (size_t d = 2; has_window(*applied.op) && d < applied.out.rank; ++d) {
    const int32_t in = applied.operands[0].dims[d], out = applied.out.dims[d];
    const bool transposed = is_transposed(*applied.op);
    if (transposed && applied.window.rest[d - 2] < 0) return false;  // smaller than one window
    if (in < 1 || !sees(applied.window, d - 2, transposed, in, out)) return false;
  }
  return true;
}

int written_axis(const Applied& applied, int dim) {
  const Rule rule = applied.op->rule;
  const bool either = rule == Rule::kReduce || rule == Rule::kArgReduce || rule == Rule::kAxis ||
                      rule == Rule::kTranspose || rule == Rule::kCat || rule == Rule::kSlice;
  const int rank = applied.operands[0].rank;
  const bool from_end = either && (applied.axes == Applied::kFromEnd ||
                                   (applied.axes == Applied::kLastFromEnd && dim == rank - 1));
  return from_end ? dim - rank : dim;
}

int operand_count(const Applied& applied) {
  if (applied.op->rule == Rule::kStack) return applied.out.dims[static_cast<size_t>(applied.form->dim)];
  return applied.form->slots;
}

int group_count(const Applied& applied) {
  if (applied.groups != 0) return applied.groups;
  const int channels = applied.out.dims[1];
  for (const int groups : {32, 16, 8, 4, 2})
    if (channels % groups == 0 && channels > groups) return groups;
  return 1;
}

int32_t groups_of(const Applied& convolution) {
  return convolution.window.groups == 0 ? convolution.out.dims[1] : convolution.window.groups;
}

int64_t index_bound(const Applied& applied) {
  switch (applied.op->rule) {
    case Rule::kGather:
    case Rule::kIndexSelect:
      return applied.operands[0].dims[static_cast<size_t>(applied.form->dim)];
    case Rule::kEmbedding:
      return applied.inner[0];
    case Rule::kClassLoss:
      return applied.inner[1];
    default:
      return 1;
  }
}

int64_t contracted_length(const Applied& applied) {
  const bool product = applied.op->rule == Rule::kMatmul || applied.op->rule == Rule::kBmm ||
                       applied.op->rule == Rule::kMatmulTransposed;
  return product ? applied.inner[0] : 1;
}

bool is_inferred(const Applied& applied, size_t dim) {
  if (applied.inferred == Applied::kNone || applied.out.rank < 2) return false;
  return dim == (applied.inferred == Applied::kFirst ? 0 : applied.out.rank - 1U);
}
int spatial_axes(const Applied& applied) { return std::max(0, applied.operands[0].rank - 2); }

}  // namespace nereid::ops
