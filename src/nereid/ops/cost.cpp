#include "nereid/ops/cost.h"

#include <cmath>

#include "nereid/trace/cost.h"
#include "nereid/trace/op_table.h"

namespace nereid::ops {
namespace {

double elements(const Shape& shape) { return static_cast<double>(shape.elements()); }

double window(const Applied& applied) {
  double elements = 1;
  for (size_t d = 0; d < static_cast<size_t>(spatial_axes(applied)); ++d)
    elements *= applied.window.kernel[d];
  return elements;
}

double convolution_weight(const Applied& applied) {
  return applied.out.dims[1] * (applied.operands[0].dims[1] / static_cast<double>(groups_of(applied))) *
         window(applied);
}

double convolution_flops(const Applied& applied) {
  const Shape& positions = is_transposed(*applied.op) ? applied.operands[0] : applied.out;
  return 2 * elements(positions) / positions.dims[1] * convolution_weight(applied);
}

double gates(const Applied& applied) {
  return applied.op->name == "lstm_cell" ? 4 : applied.op->name == "gru_cell" ? 3 : 1;
}

double reduction_operations(std::string_view name) {
  if (name.starts_with("var") || name.starts_with("std") || name == "logsumexp") return 4;
  return name == "norm" || name.ends_with("_square") || name.ends_with("_abs") ? 2 : 1;
}

double normalisation_operations(std::string_view name) {
  if (name.find("softmax") != name.npos) return 5;
  return name.starts_with("rms_norm") ? 4 : 8;
}

double loss_operations(std::string_view name) {
  if (name.starts_with("mse")) return 3;
  return name == "cosine_similarity" ? 1 : 5;
}

double flops_of(const Applied& applied) {
  const std::string_view name = applied.op->name;
  const double n = elements(applied.operands[0]), out = elements(applied.out);
  switch (applied.op->lowering) {
    case Lowering::kPointwise:
      return (name == "softsign" ? 3
                                 : trace::pointwise_operations(trace::split_name(applied.op->aten).name)) *
             out;
    case Lowering::kReduction:
      return reduction_operations(name) * n;
    case Lowering::kScan:
      return n;
    case Lowering::kContraction:
      return 2 * out * applied.inner[0];
    case Lowering::kConvolution:
      return convolution_flops(applied);
    case Lowering::kPooling:
      return applied.op->rule == Rule::kGlobalPool ? n : window(applied) * out;
    case Lowering::kNormalisation:
      return normalisation_operations(name) * n;
    case Lowering::kAttention: {
      const double rows = n / applied.operands[0].dims[3];
      const double keys = applied.operands[1].dims[2];
      return 2 * rows * keys * (applied.operands[0].dims[3] + applied.out.dims[3]);
    }
    case Lowering::kLoss:
      return loss_operations(name) * n;
    case Lowering::kRecurrent:
      return 2.0 * applied.out.dims[0] * gates(applied) * applied.out.dims[1] *
             (applied.inner[0] + applied.out.dims[1]);
    case Lowering::kLayout:
    case Lowering::kGather:
      return 0;
  }
  return 0;
}

double bytes_each(Range range) { return range == Range::kIndex ? 8 : range == Range::kMask ? 1 : 4; }

}  // namespace

double parameter_elements(const Applied& applied) {
  const Shape &x = applied.operands[0], &out = applied.out;
  const std::string_view name = applied.op->name;
  if (name == "batch_norm_eval") return 4.0 * x.dims[1];
  if (name == "prelu") return 1;
  if (name == "prelu_channels") return x.dims[1];
  if (name == "layer_norm_of_two") return 2.0 * x.dims[x.rank - 1U] * x.dims[x.rank - 2U];
  if (name == "instance_norm_affine") return 2.0 * x.dims[1];
  if (applied.op->weights.empty()) return 0;
  const double bias = applied.bias ? 1 : 0;
  switch (applied.op->rule) {
    case Rule::kLinear:
      return out.dims[out.rank - 1U] * (applied.inner[0] + bias);
    case Rule::kEmbedding:
      return static_cast<double>(applied.inner[0]) * out.dims[out.rank - 1U];
    case Rule::kBatchNorm:
    case Rule::kGroupNorm:
      return 2.0 * x.dims[1];
    case Rule::kRowNorm:
      return (name.starts_with("rms_norm") ? 1.0 : 2.0) * x.dims[x.rank - 1U];
    case Rule::kCell:
      return gates(applied) * out.dims[1] * (applied.inner[0] + out.dims[1] + 2.0);
    default:
      break;
  }
  if (applied.op->lowering == Lowering::kConvolution) return convolution_weight(applied) + bias * out.dims[1];
  return 0;
}

Cost cost_of(const Applied& applied) {
  Cost cost{.flops = flops_of(applied), .bytes = 4 * parameter_elements(applied)};
  for (int i = 0; i < operand_count(applied); ++i) {
    const auto slot = static_cast<size_t>(std::min(i, applied.form->slots - 1));
    cost.bytes += elements(applied.operands[slot]) * bytes_each(applied.op->ranges[slot]);
  }
  cost.bytes += elements(applied.out) * (applied.op->indices ? 8 : 4);
  return cost;
}

}  // namespace nereid::ops
