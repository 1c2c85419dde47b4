// Reductions, and the norms and softmaxes that are made of them. A variance is the mean of squared distances
// from the mean, in two passes, as PyTorch's result is defined.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/lower/import.h"

namespace nereid::lower {
namespace {

// How a reduction over some axes of a value is laid out: dimensions that stay come first, then those that go.
struct Axes {
  Extents sizes;        // of the value
  Extents kept, gone;   // their sizes
  std::vector<int> of;  // of each of the value's dimensions: its dimension in a node's body

  Axes(const Extents& all, std::vector<int64_t> axes) : sizes(all), of(all.size()) {
    std::vector<bool> goes(all.size(), axes.empty());
    for (auto axis : axes)
      goes.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(all.size()) : axis)) = true;
    for (size_t d = 0; d < all.size(); ++d) {
      if (goes[d]) continue;
      of[d] = static_cast<int>(kept.size());
      kept.push_back(all[d]);
    }
    for (size_t d = 0; d < all.size(); ++d) {
      if (!goes[d]) continue;
      of[d] = static_cast<int>(kept.size() + gone.size());
      gone.push_back(all[d]);
      gone_dims.push_back(d);
    }
  }
  std::vector<size_t> gone_dims;

  Extents extents() const {
    Extents both = kept;
    both.insert(both.end(), gone.begin(), gone.end());
    return both;
  }
  // The value's own index, in the body of a reduction over these axes.
  std::vector<Index> in_body() const {
    std::vector<Index> at;
    for (const int d : of) at.push_back(Index::dimension(d));
    return at;
  }
  // The index of what is kept, in a body over the value's own dimensions.
  std::vector<Index> in_whole() const {
    std::vector<Index> at(kept.size());
    for (size_t d = 0; d < of.size(); ++d)
      if (of[d] < static_cast<int>(kept.size()))
        at[static_cast<size_t>(of[d])] = Index::dimension(static_cast<int>(d));
    return at;
  }
  double count() const { return static_cast<double>(element_count(gone)); }
};

class Reducer {
 public:
  explicit Reducer(Importer& import) : import_(import), exprs_(import.exprs()) {}

  ExprId apply(Fn fn, ExprId a) { return exprs_.apply(fn, {a}); }
  ExprId apply(Fn fn, ExprId a, ExprId b) { return exprs_.apply(fn, {a, b}); }
  ExprId constant(double number, DType type) { return exprs_.constant(number, type); }

  // The element of x in the body of a reduction over `axes`, in the compute type.
  ExprId element(trace::ValueId x, const Axes& axes) {
    const ExprId read = import_.read(x, axes.in_body(), axes.extents());
    return read < 0 ? read : exprs_.cast(read, compute_type(import_.value(x).dtype));
  }
  ExprId element_of_whole(trace::ValueId x) {
    const auto& sizes = import_.value(x).sizes;
    const ExprId read = import_.read(x, dimensions(sizes.size()), sizes);
    return read < 0 ? read : exprs_.cast(read, compute_type(import_.value(x).dtype));
  }
  ExprId kept(TensorId tensor, const Axes& axes) {
    return import_.load(tensor, dimensions(axes.kept.size()));
  }
  ExprId of_whole(TensorId tensor, const Axes& axes) { return import_.load(tensor, axes.in_whole()); }

  TensorId reduce(Reduction reduction, const Axes& axes, ExprId body, std::string name) {
    return import_.temporary(reduction, axes.kept, axes.gone, body, exprs_[body].type, std::move(name));
  }
  TensorId map(const Axes& axes, ExprId body, std::string name) {
    return import_.temporary(Reduction::kNone, axes.kept, {}, body, exprs_[body].type, std::move(name));
  }
  TensorId mean(const Axes& axes, ExprId element, std::string name = "mean") {
    const TensorId sum = reduce(Reduction::kSum, axes, element, name);
    const DType type = exprs_[element].type;
    return map(axes, apply(Fn::kMul, kept(sum, axes), constant(1 / axes.count(), type)), name);
  }
  // The mean of squared distances from `mean`, with `correction` fewer in the divisor.
  TensorId variance(const Axes& axes, ExprId element, TensorId mean, double correction = 0) {
    const ExprId distance = apply(Fn::kSub, element, kept(mean, axes));
    const TensorId sum = reduce(Reduction::kSum, axes, apply(Fn::kMul, distance, distance), "variance");
    const double divisor = std::max(axes.count() - correction, 0.0);
    return map(axes, apply(Fn::kMul, kept(sum, axes), constant(1 / divisor, exprs_[element].type)),
               "variance");
  }

 private:
  Importer& import_;
  Exprs& exprs_;
};

std::vector<int64_t> axes_of(Importer& import, size_t position, std::string_view name) {
  return import.integers(import.arg(position, name));
}

using Body = std::function<ExprId(Reducer&, ExprId)>;
using Finish = std::function<ExprId(Reducer&, const Axes&, ExprId)>;

// reduction over body(x), then finish(result).
OperatorImport reduction(Reduction kind, std::string name, Body body = nullptr, Finish finish = nullptr) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    if (!x || results.empty()) return import.cannot("expected one tensor");
    const Axes axes(import.value(*x).sizes, axes_of(import, 1, "dim"));
    Reducer reduce(import);
    ExprId element = reduce.element(*x, axes);
    if (element < 0) return import.define(results[0], -1, "");
    const DType type = compute_type(import.value(results[0]).dtype);
    element = import.exprs().cast(element, type);
    if (body) element = body(reduce, element);
    if (!finish) return import.define_reduction(results[0], kind, axes.kept, axes.gone, element, name);
    const TensorId partial = reduce.reduce(kind, axes, element, name);
    return import.define_reduction(results[0], Reduction::kNone, axes.kept, {},
                                   finish(reduce, axes, reduce.kept(partial, axes)), name);
  };
}

Status mean(Importer& import) {
  const auto finish = [](Reducer& reduce, const Axes& axes, ExprId sum) {
    return reduce.apply(Fn::kMul, sum, reduce.constant(1 / axes.count(), DType::kF32));
  };
  return reduction(Reduction::kSum, "mean", nullptr, finish)(import);
}

// max.dim and its kin: values and where they stand.
OperatorImport extremum(Reduction value, Reduction position, const char* name) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    if (!x || results.empty()) return import.cannot("expected one tensor");
    if (import.tensor(import.arg(1, "other"))) return import.cannot("expected one tensor");
    const Axes axes(import.value(*x).sizes, axes_of(import, 1, "dim"));
    Reducer reduce(import);
    const ExprId element = reduce.element(*x, axes);
    if (element < 0) return import.define(results[0], -1, "");
    NEREID_TRY_STATUS(import.define_reduction(results[0], value, axes.kept, axes.gone, element, name));
    if (results.size() < 2) return ok_status();
    return import.define_reduction(results[1], position, axes.kept, axes.gone, element,
                                   std::string("arg") + name);
  };
}

OperatorImport arg_extremum(Reduction position, const char* name) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    if (!x || results.empty()) return import.cannot("expected one tensor");
    const Axes axes(import.value(*x).sizes, axes_of(import, 1, "dim"));
    Reducer reduce(import);
    const ExprId element = reduce.element(*x, axes);
    if (element < 0) return import.define(results[0], -1, "");
    return import.define_reduction(results[0], position, axes.kept, axes.gone, element, name);
  };
}

Status variance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto results = import.results();
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
  if (element < 0) return import.define(results.at(0), -1, "");
  const TensorId mean = reduce.mean(axes, element);
  const TensorId found = reduce.variance(axes, element, mean, import.number(import.arg(2, "correction"), 1));
  ExprId result = reduce.kept(found, axes);
  const bool root = import.call().op.starts_with("aten::std");
  if (root) result = reduce.apply(Fn::kSqrt, result);
  return import.define_reduction(results.at(0), Reduction::kNone, axes.kept, {}, result,
                                 root ? "std" : "variance");
}

Status vector_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto results = import.results();
  const double order = import.number(import.arg(1, "ord"), 2);
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 2, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
  if (element < 0) return import.define(results.at(0), -1, "");
  const ExprId size = reduce.apply(Fn::kAbs, element);
  if (std::isinf(order))
    return import.define_reduction(results.at(0), order > 0 ? Reduction::kMax : Reduction::kMin, axes.kept,
                                   axes.gone, size, "norm");
  if (order != 1 && order != 2) return import.cannot("a norm of another order than 1, 2 and infinity");
  const ExprId body = order == 1 ? size : reduce.apply(Fn::kMul, element, element);
  const TensorId sum = reduce.reduce(Reduction::kSum, axes, body, "norm");
  const ExprId total = reduce.kept(sum, axes);
  return import.define_reduction(results.at(0), Reduction::kNone, axes.kept, {},
                                 order == 1 ? total : reduce.apply(Fn::kSqrt, total), "norm");
}

// exp(x - max) over its sum, or the logarithm of that.
OperatorImport softmax(bool logarithm) {
  return [logarithm](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    const Axes axes(import.value(x.value()).sizes, {import.integer(import.arg(1, "dim"), 0)});
    Reducer reduce(import);
    const std::string name = logarithm ? "log_softmax" : "softmax";
    const ExprId element = reduce.element(*x, axes);
    if (element < 0) return import.define(results.at(0), -1, "");
    const TensorId most = reduce.reduce(Reduction::kMax, axes, element, name + "_max");
    const ExprId exponential =
        reduce.apply(Fn::kExp, reduce.apply(Fn::kSub, element, reduce.kept(most, axes)));
    const TensorId sum = reduce.reduce(Reduction::kSum, axes, exponential, name + "_sum");
    const ExprId shifted = reduce.apply(Fn::kSub, reduce.element_of_whole(*x), reduce.of_whole(most, axes));
    const ExprId total = reduce.of_whole(sum, axes);
    return import.define(results.at(0),
                         logarithm ? reduce.apply(Fn::kSub, shifted, reduce.apply(Fn::kLog, total))
                                   : reduce.apply(Fn::kDiv, reduce.apply(Fn::kExp, shifted), total),
                         name);
  };
}

Status logsumexp(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto results = import.results();
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
  if (element < 0) return import.define(results.at(0), -1, "");
  const DType type = import.exprs()[element].type;
  // A row of infinities has no distance from its largest: that is taken from 0 instead.
  const TensorId most = reduce.reduce(Reduction::kMax, axes, element, "logsumexp_max");
  const auto finite = [&](ExprId value) {
    const ExprId infinite = reduce.apply(Fn::kIsInf, value);
    return import.exprs().apply(Fn::kWhere, {infinite, reduce.constant(0, type), value});
  };
  const ExprId shift = finite(reduce.kept(most, axes));
  const TensorId sum = reduce.reduce(
      Reduction::kSum, axes, reduce.apply(Fn::kExp, reduce.apply(Fn::kSub, element, shift)), "logsumexp_sum");
  return import.define_reduction(
      results.at(0), Reduction::kNone, axes.kept, {},
      reduce.apply(Fn::kAdd, reduce.apply(Fn::kLog, reduce.kept(sum, axes)), shift), "logsumexp");
}

// (x - mean) / sqrt(variance + eps), over `axes`; then a scale and a shift given at indices of the whole.
Status normalise(Importer& import, trace::ValueId x, const Axes& axes, double epsilon, ExprId scale,
                 ExprId shift, const std::string& name) {
  const auto results = import.results();
  Reducer reduce(import);
  const ExprId element = reduce.element(x, axes);
  if (element < 0) return import.define(results.at(0), -1, "");
  const DType type = import.exprs()[element].type;
  const TensorId mean = reduce.mean(axes, element);
  const TensorId variance = reduce.variance(axes, element, mean);
  const ExprId deviation =
      reduce.apply(Fn::kAdd, reduce.kept(variance, axes), reduce.constant(epsilon, type));
  const TensorId inverse = reduce.map(axes, reduce.apply(Fn::kRsqrt, deviation), name + "_scale");
  const ExprId distance = reduce.apply(Fn::kSub, reduce.element_of_whole(x), reduce.of_whole(mean, axes));
  ExprId result = reduce.apply(Fn::kMul, distance, reduce.of_whole(inverse, axes));
  if (scale >= 0) result = reduce.apply(Fn::kMul, result, scale);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  return import.define(results.at(0), result, name);
}

// A vector of weights, at the index that `at` gives of the whole; -1 where there is none.
ExprId weight(Importer& import, const trace::Arg* arg, std::vector<Index> at, const Extents& extents,
              DType type) {
  const auto id = import.tensor(arg);
  if (!id) return -1;
  const ExprId read = import.read(*id, std::move(at), extents);
  return read < 0 ? read : import.exprs().cast(read, type);
}

Status layer_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const auto shape = axes_of(import, 1, "normalized_shape");
  const size_t first = value.sizes.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t d = first; d < value.sizes.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const auto at = dimensions(shape.size(), first);
  const DType type = compute_type(value.dtype);
  const ExprId scale = weight(import, import.arg(2, "weight"), at, value.sizes, type);
  const ExprId shift = weight(import, import.arg(3, "bias"), at, value.sizes, type);
  return normalise(import, *x, Axes(value.sizes, axes), import.number(import.arg(4, "eps"), 1e-5), scale,
                   shift, "layer_norm");
}

// Over channels' groups and the area: x as [n, groups, channels / groups, area].
Status group_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  const int64_t groups = import.integer(import.arg(6, "group"), 1);
  const int64_t channels = value.sizes.at(1), area = element_count(value.sizes) / (value.sizes[0] * channels);
  const auto results = import.results();
  const DType type = compute_type(value.dtype);
  const Extents apart{value.sizes[0], groups, channels / groups, area};
  const Axes axes(apart, {2, 3});
  Reducer reduce(import);
  // The element of x at a linear index of its row-major order.
  const auto at_linear = [&](const Index& linear, const Extents& extents) {
    const ExprId read = import.read(*x, unravel(linear, value.sizes, extents), extents);
    return read < 0 ? read : import.exprs().cast(read, type);
  };
  Index linear;
  const auto strides = row_major(apart);
  for (int d = 0; d < 4; ++d) linear = linear + Index::dimension(d) * strides[static_cast<size_t>(d)];
  const ExprId element = at_linear(linear, apart);
  if (element < 0) return import.define(results.at(0), -1, "");
  const TensorId mean = reduce.mean(axes, element);
  const TensorId variance = reduce.variance(axes, element, mean);
  const double epsilon = import.number(import.arg(7, "eps"), 1e-5);
  const TensorId inverse = reduce.map(
      axes,
      reduce.apply(Fn::kRsqrt,
                   reduce.apply(Fn::kAdd, reduce.kept(variance, axes), reduce.constant(epsilon, type))),
      "group_norm_scale");
  const std::vector<Index> group{Index::dimension(0),
                                 quotient(Index::dimension(1), channels / groups, value.sizes)};
  ExprId result = reduce.apply(Fn::kSub, reduce.element_of_whole(*x), import.load(mean, group));
  result = reduce.apply(Fn::kMul, result, import.load(inverse, group));
  const std::vector<Index> channel{Index::dimension(1)};
  const ExprId scale = weight(import, import.arg(1, "weight"), channel, value.sizes, type);
  const ExprId shift = weight(import, import.arg(2, "bias"), channel, value.sizes, type);
  if (scale >= 0) result = reduce.apply(Fn::kMul, result, scale);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  return import.define(results.at(0), result, "group_norm");
}

// In eval mode, a scale and a shift for each channel.
Status batch_norm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input"));
  const auto& value = import.value(x.value());
  if (import.flag(import.arg(5, "training"), false)) return import.cannot("it updates running statistics");
  const DType type = compute_type(value.dtype);
  const std::vector<Index> channel{Index::dimension(1)};
  Reducer reduce(import);
  const ExprId mean = weight(import, import.arg(3, "running_mean"), channel, value.sizes, type);
  const ExprId variance = weight(import, import.arg(4, "running_var"), channel, value.sizes, type);
  const ExprId element = reduce.element_of_whole(*x);
  if (mean < 0 || variance < 0 || element < 0) return import.cannot("it has no running statistics");
  const ExprId scale = weight(import, import.arg(1, "weight"), channel, value.sizes, type);
  const ExprId shift = weight(import, import.arg(2, "bias"), channel, value.sizes, type);
  const double epsilon = import.number(import.arg(7, "eps"), 1e-5);
  ExprId factor = reduce.apply(Fn::kRsqrt, reduce.apply(Fn::kAdd, variance, reduce.constant(epsilon, type)));
  if (scale >= 0) factor = reduce.apply(Fn::kMul, factor, scale);
  ExprId result = reduce.apply(Fn::kMul, reduce.apply(Fn::kSub, element, mean), factor);
  if (shift >= 0) result = reduce.apply(Fn::kAdd, result, shift);
  return import.define(import.results().at(0), result, "batch_norm");
}

}  // namespace

void add_reductions(OperatorTable& table) {
  table["aten::sum"] = reduction(Reduction::kSum, "sum");
  table["aten::mean"] = mean;
  table["aten::prod"] = reduction(Reduction::kProd, "product");
  table["aten::amax"] = reduction(Reduction::kMax, "max");
  table["aten::amin"] = reduction(Reduction::kMin, "min");
  table["aten::max"] = extremum(Reduction::kMax, Reduction::kArgMax, "max");
  table["aten::min"] = extremum(Reduction::kMin, Reduction::kArgMin, "min");
  table["aten::argmax"] = arg_extremum(Reduction::kArgMax, "argmax");
  table["aten::argmin"] = arg_extremum(Reduction::kArgMin, "argmin");
  table["aten::var"] = variance;
  table["aten::std"] = variance;
  table["aten::linalg_vector_norm"] = vector_norm;
  table["aten::_softmax"] = softmax(false);
  table["aten::_log_softmax"] = softmax(true);
  table["aten::logsumexp"] = logsumexp;
  table["aten::native_layer_norm"] = layer_norm;
  table["aten::native_group_norm"] = group_norm;
  for (const char* name : {"batch_norm", "native_batch_norm", "cudnn_batch_norm"})
    table[std::string("aten::") + name] = batch_norm;
}

}  // namespace nereid::lower
