// Norms: layer, group, instance, batch and root mean square.
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

using Statistics = Reducer::Moments;

// (x - mean) / sqrt(variance + eps), over `axes`; then a scale and a shift given at indices of the whole, -1
// where there is none.
Result<Statistics> normalise(Importer& import, trace::ValueId x, const Axes& axes, double epsilon,
                             ExprId scale, ExprId shift, const std::string& name) {
  Reducer reduce(import);
  const ExprId element = reduce.element(x, axes);
  const DType type = import.exprs()[element].type;
  const Statistics found = reduce.moments(axes, element);
  const ExprId deviation =
      reduce.apply(Fn::kAdd, reduce.kept(found.variance, axes), reduce.constant(epsilon, type));
  const TensorId inverse = reduce.map(axes, reduce.apply(Fn::kRsqrt, deviation), name + "_scale");
  const ExprId rough = reduce.apply(Fn::kSub, reduce.element_of_whole(x), reduce.of_whole(found.rough, axes));
  const ExprId distance = reduce.apply(Fn::kSub, rough, reduce.of_whole(found.rest, axes));
  ExprId result = reduce.apply(Fn::kMul, distance, reduce.of_whole(inverse, axes));
  if (scale >= 0) result = reduce.apply(Fn::kMul, result, scale);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  NEREID_TRY_STATUS(import.define(import.results().at(0), result, name));
  return found;
}

// A vector of weights, at the index that `at` gives of the whole; -1 where there is none.
ExprId weight(Importer& import, const trace::Arg* arg, const std::vector<Index>& at, const Extents& extents,
              DType type) {
  const auto id = import.tensor(arg);
  return id ? import.exprs().cast(import.read(*id, at, extents), type) : -1;
}

Status layer_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const auto shape = import.integers(import.arg(1, "normalized_shape"));
  const size_t first = value.sizes.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t d = first; d < value.sizes.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const auto at = dimensions(shape.size(), first);
  const DType type = compute_type(value.dtype);
  const ExprId scale = weight(import, import.arg(2, "weight"), at, value.sizes, type);
  const ExprId shift = weight(import, import.arg(3, "bias"), at, value.sizes, type);
  NEREID_TRY_STATUS(normalise(import, *x, Axes(value.sizes, axes), import.number(import.arg(4, "eps"), 1e-5),
                              scale, shift, "layer_norm"));
  return ok_status();
}

// Over channels' groups and the area: x as [n, groups, channels / groups, area].
Status group_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const int64_t groups = import.integer(import.arg(6, "group"), 1);
  const Size channels = value.sizes.at(1), area = element_count(value.sizes) / (value.sizes[0] * channels);
  const auto results = import.results();
  const DType type = compute_type(value.dtype);
  const Extents apart{value.sizes[0], groups, channels / groups, area};
  const Axes axes(apart, {2, 3});
  Reducer reduce(import);
  // The element of x at a linear index of its row-major order.
  const auto at_linear = [&](const Index& linear, const Extents& extents) {
    const ExprId read = import.read(*x, unravel(linear, value.sizes, extents), extents);
    return import.exprs().cast(read, type);
  };
  Index linear;
  const auto strides = row_major(apart);
  for (int d = 0; d < 4; ++d) linear = linear + Index::dimension(d) * strides[static_cast<size_t>(d)];
  const ExprId element = at_linear(linear, apart);
  const Statistics found = reduce.moments(axes, element);
  const double epsilon = import.number(import.arg(7, "eps"), 1e-5);
  const TensorId inverse = reduce.map(
      axes,
      reduce.apply(Fn::kRsqrt,
                   reduce.apply(Fn::kAdd, reduce.kept(found.variance, axes), reduce.constant(epsilon, type))),
      "group_norm_scale");
  const std::vector<Index> group{Index::dimension(0),
                                 quotient(Index::dimension(1), channels / groups, value.sizes)};
  ExprId result = reduce.apply(Fn::kSub, reduce.element_of_whole(*x), import.load(found.rough, group));
  result = reduce.apply(Fn::kSub, result, import.load(found.rest, group));
  result = reduce.apply(Fn::kMul, result, import.load(inverse, group));
  const std::vector<Index> channel{Index::dimension(1)};
  const ExprId scale = weight(import, import.arg(1, "weight"), channel, value.sizes, type);
  const ExprId shift = weight(import, import.arg(2, "bias"), channel, value.sizes, type);
  if (scale >= 0) result = reduce.apply(Fn::kMul, result, scale);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  return import.define(results.at(0), result, "group_norm");
}

// (x - mean) scale / sqrt(variance + eps) + shift with statistics that are given.
Status with_running_statistics(Importer& import, const std::string& name) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const DType type = compute_type(value.dtype);
  const std::vector<Index> channel{Index::dimension(1)};
  Reducer reduce(import);
  const ExprId mean = weight(import, import.arg(3, "running_mean"), channel, value.sizes, type);
  const ExprId variance = weight(import, import.arg(4, "running_var"), channel, value.sizes, type);
  if (mean < 0 || variance < 0) return import.cannot("it has no running statistics");
  const ExprId scale = weight(import, import.arg(1, "weight"), channel, value.sizes, type);
  const ExprId shift = weight(import, import.arg(2, "bias"), channel, value.sizes, type);
  const double epsilon = import.number(import.arg(7, "eps"), 1e-5);
  ExprId factor = reduce.apply(Fn::kRsqrt, reduce.apply(Fn::kAdd, variance, reduce.constant(epsilon, type)));
  if (scale >= 0) factor = reduce.apply(Fn::kMul, factor, scale);
  ExprId result = reduce.apply(Fn::kMul, reduce.apply(Fn::kSub, reduce.element_of_whole(*x), mean), factor);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  return import.define(import.results().at(0), result, name);
}

// running = (1 - momentum) running + momentum * found, where `found` has `count` elements after each of its
// own and one element a channel, or one a sample and channel: those are averaged.
Status update_running(Importer& import, const trace::Arg* running, TensorId found, bool each_sample,
                      const Size& samples, const Ratio& factor, const std::string& name) {
  const auto id = import.tensor(running);
  if (!id) return ok_status();
  const double momentum = import.number(import.arg(6, "momentum"), 0.1);
  const Extents channels = import.value(*id).sizes;
  const Value old(import.exprs(), import.read(*id, dimensions(1), channels));
  Value now(import.exprs(), -1);
  if (each_sample) {
    const ExprId one = import.load(found, {Index::dimension(1), Index::dimension(0)});
    const TensorId sum =
        import.temporary(Reduction::kSum, channels, {samples}, one, import.exprs()[one].type, name);
    now = Value(import.exprs(), import.load(sum, dimensions(1))) * Ratio{.over = 1, .under = samples};
  } else {
    now = Value(import.exprs(), import.load(found, dimensions(1)));
  }
  const Value mixed = old * (1 - momentum) + (now * factor).cast(old.type()) * momentum;
  return import.define(*id, mixed.id(), name);
}

Status with_own_statistics(Importer& import, const std::string& name, bool each_sample) {
  const auto x = import.tensor(import.arg(0, "input"));
  const Extents sizes = import.value(x.value()).sizes;
  const DType type = compute_type(import.value(*x).dtype);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != 1 && (d > 0 || !each_sample)) axes.push_back(static_cast<int64_t>(d));
  if (axes.empty()) return import.cannot("it has nothing to take statistics over");
  const Axes over(sizes, axes);
  const std::vector<Index> channel{Index::dimension(1)};
  const ExprId scale = weight(import, import.arg(1, "weight"), channel, sizes, type);
  const ExprId shift = weight(import, import.arg(2, "bias"), channel, sizes, type);
  NEREID_TRY(const Statistics found,
             normalise(import, *x, over, import.number(import.arg(7, "eps"), 1e-5), scale, shift, name));
  const Size count = over.elements();
  NEREID_TRY_STATUS(update_running(import, import.arg(3, "running_mean"), found.mean, each_sample, sizes[0],
                                   {}, "running_mean"));
  return update_running(import, import.arg(4, "running_var"), found.variance, each_sample, sizes[0],
                        {.over = count, .under = max(count - 1, 1)}, "running_var");
}

// instance_norm's flag says the same as batch_norm's: take statistics of the input.
OperatorImport channel_norm(std::string name, bool each_sample) {
  return [=](Importer& import) -> Status {
    return import.flag(import.arg(5, "training"), false) ? with_own_statistics(import, name, each_sample)
                                                         : with_running_statistics(import, name);
  };
}

// x / sqrt(mean of squares + eps) * weight; eps is the type's own where none is given.
Status rms_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const size_t rank = value.sizes.size(),
               first = rank - import.integers(import.arg(1, "normalized_shape")).size();
  std::vector<int64_t> dims;
  for (size_t d = first; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  const Axes axes(value.sizes, dims);
  const DType type = compute_type(value.dtype);
  const double own = value.dtype == DType::kF64 ? 0x1p-52 : 0x1p-23;
  const double epsilon = import.number(import.arg(3, "eps"), own);
  Reducer reduce(import);
  const Value element(import.exprs(), reduce.element(*x, axes));
  const TensorId mean = reduce.mean(axes, (element * element).id(), "mean_square");
  const Value square(import.exprs(), reduce.kept(mean, axes));
  const TensorId inverse = reduce.map(axes, (square + epsilon).apply(Fn::kRsqrt).id(), "rms_norm_scale");
  ExprId result = reduce.apply(Fn::kMul, reduce.element_of_whole(*x), reduce.of_whole(inverse, axes));
  const ExprId scale =
      weight(import, import.arg(2, "weight"), dimensions(rank - first, first), value.sizes, type);
  if (scale >= 0) result = reduce.apply(Fn::kMul, result, scale);
  return import.define(import.results()[0], result, "rms_norm");
}

// g v / |v|, the length over all dimensions but one.
Status weight_norm(Importer& import) {
  const auto v = import.tensor(import.arg(0, "v")), g = import.tensor(import.arg(1, "g"));
  const Extents sizes = import.value(v.value()).sizes;
  const int64_t axis = import.integer(import.arg(2, "dim"), 0);
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    if (d != axis) dims.push_back(d);
  const Axes axes(sizes, dims);
  Reducer reduce(import);
  const Value element(import.exprs(), reduce.element(*v, axes));
  const TensorId sum = reduce.reduce(Reduction::kSum, axes, (element * element).id(), "weight_square");
  const TensorId length =
      reduce.map(axes, Value(import.exprs(), reduce.kept(sum, axes)).apply(Fn::kSqrt).id(), "weight_length");
  const Value scale(import.exprs(), import.operand(*g, sizes, element.type()));
  const Value direction(import.exprs(), reduce.element_of_whole(*v));
  if (import.results().size() > 1) {
    std::vector<Index> at{Index::dimension(static_cast<int>(axis))};
    NEREID_TRY_STATUS(import.define(import.results()[1], import.load(length, at), "weight_length"));
  }
  return import.define(import.results()[0],
                       (direction * (scale / Value(import.exprs(), reduce.of_whole(length, axes)))).id(),
                       "weight_norm");
}

}  // namespace

void add_norms(OperatorTable& table) {
  table["aten::native_layer_norm"] = layer_norm;
  table["aten::native_group_norm"] = group_norm;
  for (const char* name : {"batch_norm", "native_batch_norm", "cudnn_batch_norm"})
    table[std::string("aten::") + name] = channel_norm("batch_norm", false);
  table["aten::instance_norm"] = channel_norm("instance_norm", true);
  table["aten::rms_norm"] = rms_norm;
  table["aten::_fused_rms_norm"] = rms_norm;
  table["aten::_weight_norm_interface"] = weight_norm;
}

}  // namespace nereid::compiler
