// Reductions, and the norms and softmaxes that are made of them. A variance is the mean of squared distances
// from the mean, in two passes, as PyTorch's result is defined.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

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
  const DType type = compute_type(import.result().dtype);
  const auto finish = [type](Reducer& reduce, const Axes& axes, ExprId sum) {
    const ExprId share = reduce.constant(Ratio{.over = 1, .under = axes.elements()}, type);
    return reduce.apply(Fn::kMul, sum, share);
  };
  return reduction(Reduction::kSum, "mean", nullptr, finish)(import);
}

// A product of some elements may leave float32's range where that of all does not.
Status product_of_elements(Importer& import) {
  const DType type = compute_type(import.result().dtype);
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x) return import.cannot("expected one tensor");
  const Axes axes(import.value(*x).sizes, axes_of(import, 1, "dim"));
  if (axes.count() <= 4 || type != DType::kF32) return reduction(Reduction::kProd, "product")(import);
  Reducer reduce(import);
  const TensorId all = reduce.reduce(Reduction::kProd, axes,
                                     import.exprs().cast(reduce.element(*x, axes), DType::kF64), "product");
  return import.define_reduction(import.results()[0], Reduction::kNone, axes.kept, {},
                                 import.exprs().cast(reduce.kept(all, axes), type), "product");
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
    return import.define_reduction(results[0], position, axes.kept, axes.gone, element, name);
  };
}

// var, std, and both with the mean as a second result: "aten::var_mean.correction".
Status variance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto results = import.results();
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
  const auto [rough, rest, mean, found] =
      reduce.moments(axes, element, import.number(import.arg(2, "correction"), 1));
  ExprId result = reduce.kept(found, axes);
  const bool root = import.call().op.starts_with("aten::std");
  if (root) result = reduce.apply(Fn::kSqrt, result);
  if (results.size() > 1)
    NEREID_TRY_STATUS(import.define_reduction(results[1], Reduction::kNone, axes.kept, {},
                                              reduce.kept(mean, axes), "mean"));
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
  const ExprId size = reduce.apply(Fn::kAbs, element);
  if (std::isinf(order))
    return import.define_reduction(results.at(0), order > 0 ? Reduction::kMax : Reduction::kMin, axes.kept,
                                   axes.gone, size, "norm");
  const Value length(import.exprs(), size);
  const Value body = order == 0   ? negated(equal(length, 0)).cast(length.type())
                     : order == 1 ? length
                     : order == 2 ? length * length
                                  : length.apply(Fn::kPow, length.constant(order));
  const TensorId sum = reduce.reduce(Reduction::kSum, axes, body.id(), "norm");
  const Value total(import.exprs(), reduce.kept(sum, axes));
  const Value root = order == 0 || order == 1 ? total
                     : order == 2             ? total.apply(Fn::kSqrt)
                                              : total.apply(Fn::kPow, total.constant(1 / order));
  return import.define_reduction(results.at(0), Reduction::kNone, axes.kept, {}, root.id(), "norm");
}

// Whether any, or every element is not zero: the largest and the smallest of zeros and ones.
OperatorImport truth(Reduction kind, const char* name) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
    Reducer reduce(import);
    const Value element(import.exprs(), reduce.element(*x, axes));
    const Value one = negated(equal(element, 0)).cast(DType::kI32);
    const TensorId found = reduce.reduce(kind, axes, one.id(), name);
    const Value result(import.exprs(), reduce.kept(found, axes));
    return import.define_reduction(import.results().at(0), Reduction::kNone, axes.kept, {},
                                   negated(equal(result, 0)).id(), name);
  };
}

Status count_nonzero(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const Value element(import.exprs(), reduce.element(*x, axes));
  return import.define_reduction(import.results().at(0), Reduction::kSum, axes.kept, axes.gone,
                                 negated(equal(element, 0)).cast(DType::kI64).id(), "count");
}

Status extremes(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
  NEREID_TRY_STATUS(
      import.define_reduction(import.results().at(0), Reduction::kMin, axes.kept, axes.gone, element, "min"));
  return import.define_reduction(import.results().at(1), Reduction::kMax, axes.kept, axes.gone, element,
                                 "max");
}

// Each slice along a dimension, scaled down to a norm of at most `maxnorm`.
Status renorm(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const double order = import.number(import.arg(1, "p"), 2),
               most = import.number(import.arg(3, "maxnorm"), 1);
  const Extents sizes = import.value(x.value()).sizes;
  const size_t slice = axis_of(import.integer(import.arg(2, "dim"), 0), sizes.size());
  std::vector<int64_t> others;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != slice) others.push_back(static_cast<int64_t>(d));
  if (others.empty() || std::isinf(order)) return import.cannot("expected a norm of several elements");
  const Axes axes(sizes, others);
  Reducer reduce(import);
  const Value size(import.exprs(), reduce.apply(Fn::kAbs, reduce.element(*x, axes)));
  const Value power = order == 2 ? size * size : size.apply(Fn::kPow, size.constant(order));
  const TensorId sum = reduce.reduce(Reduction::kSum, axes, power.id(), "norm");
  const Value total(import.exprs(), reduce.of_whole(sum, axes));
  const Value norm = order == 2 ? total.apply(Fn::kSqrt) : total.apply(Fn::kPow, total.constant(1 / order));
  const Value factor = (norm > most).where(norm.constant(most) / (norm + 1e-7), norm.constant(1));
  const Value element(import.exprs(), reduce.element_of_whole(*x));
  return import.define(import.results()[0], (element * factor).id(), "renorm");
}

// Whether an element is among those of another tensor.
Status is_in(Importer& import) {
  const auto x = import.tensor(import.arg(0, "elements")), of = import.tensor(import.arg(1, "test_elements"));
  if (!x || !of) return import.cannot("expected two tensors");
  const bool inverted = import.flag(import.arg(3, "invert"), false);
  const Extents sizes = import.result().sizes, all = import.value(*of).sizes;
  Extents extents = sizes;
  extents.insert(extents.end(), all.begin(), all.end());
  const DType a = compute_type(import.value(*x).dtype), b = compute_type(import.value(*of).dtype);
  if (a != b) return import.cannot("its operands have different types");
  const Value element(import.exprs(), import.read(*x, dimensions(sizes.size()), extents));
  const Value other(import.exprs(), import.read(*of, dimensions(all.size(), sizes.size()), extents));
  const TensorId found = import.temporary(Reduction::kMax, sizes, all,
                                          equal(element, other).cast(DType::kI32).id(), DType::kI32, "is_in");
  const Value any(import.exprs(), import.load(found, dimensions(sizes.size())));
  return import.define(import.results()[0], (inverted ? equal(any, 0) : negated(equal(any, 0))).id(),
                       "is_in");
}

Status trace_of(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Extents sizes = import.value(x.value()).sizes, reduced{std::min(sizes.at(0), sizes.at(1))};
  const std::vector<Index> at{Index::dimension(0), Index::dimension(0)};
  return import.define_reduction(import.results()[0], Reduction::kSum, {}, reduced,
                                 import.read(*x, at, reduced), "trace");
}

enum class Softmax : uint8_t { kUsual, kLogarithm, kSafe };

// exp(x - max) over its sum, or the logarithm of that. Safe: 0 in a row of which every element is -inf.
OperatorImport softmax(Softmax form) {
  const bool logarithm = form == Softmax::kLogarithm, safe = form == Softmax::kSafe;
  return [logarithm, safe](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    const Axes axes(import.value(x.value()).sizes, {import.integer(import.arg(1, "dim"), 0)});
    Reducer reduce(import);
    const std::string name = logarithm ? "log_softmax" : safe ? "safe_softmax" : "softmax";
    const size_t axis = axes.reduced_dims.at(0);
    const DType type = compute_type(import.result().dtype);  // one of its own, where a dtype is given
    const ExprId given = reduce.element_of_whole(*x);
    const ExprId whole = import.exprs().cast(safe ? given : import.without_shift(*x, axis, given), type);
    const auto largest = [&](ExprId most) {
      if (!safe) return most;
      const ExprId none = reduce.apply(Fn::kEqual, most, reduce.constant(-HUGE_VAL, type));
      return import.exprs().apply(Fn::kWhere, {none, reduce.constant(0, type), most});
    };
    const ExprId element = import.exprs().substitute(whole, axes.in_body(), axes.extents());
    const TensorId most = reduce.reduce(Reduction::kMax, axes, element, name + "_max");
    const ExprId exponential =
        reduce.apply(Fn::kExp, reduce.apply(Fn::kSub, element, largest(reduce.kept(most, axes))));
    const TensorId sum = reduce.reduce(Reduction::kSum, axes, exponential, name + "_sum");
    const ExprId shifted = reduce.apply(Fn::kSub, whole, largest(reduce.of_whole(most, axes)));
    const ExprId total = reduce.of_whole(sum, axes);
    ExprId result = logarithm ? reduce.apply(Fn::kSub, shifted, reduce.apply(Fn::kLog, total))
                              : reduce.apply(Fn::kDiv, reduce.apply(Fn::kExp, shifted), total);
    const ExprId zero = reduce.constant(0, type);
    if (safe)
      result = import.exprs().apply(Fn::kWhere, {reduce.apply(Fn::kEqual, total, zero), zero, result});
    return import.define(results.at(0), result, name);
  };
}

Status logsumexp(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto results = import.results();
  const Axes axes(import.value(x.value()).sizes, axes_of(import, 1, "dim"));
  Reducer reduce(import);
  const ExprId element = reduce.element(*x, axes);
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

}  // namespace

void add_reductions(OperatorTable& table) {
  table["aten::sum"] = reduction(Reduction::kSum, "sum");
  table["aten::mean"] = mean;
  table["aten::prod"] = product_of_elements;
  table["aten::amax"] = reduction(Reduction::kMax, "max");
  table["aten::amin"] = reduction(Reduction::kMin, "min");
  table["aten::max"] = extremum(Reduction::kMax, Reduction::kArgMax, "max");
  table["aten::min"] = extremum(Reduction::kMin, Reduction::kArgMin, "min");
  table["aten::argmax"] = arg_extremum(Reduction::kArgMax, "argmax");
  table["aten::argmin"] = arg_extremum(Reduction::kArgMin, "argmin");
  table["aten::var"] = variance;
  table["aten::std"] = variance;
  table["aten::var_mean"] = variance;
  table["aten::std_mean"] = variance;
  table["aten::any"] = truth(Reduction::kMax, "any");
  table["aten::all"] = truth(Reduction::kMin, "all");
  table["aten::count_nonzero"] = count_nonzero;
  table["aten::aminmax"] = extremes;
  table["aten::trace"] = trace_of;
  table["aten::nansum"] = reduction(Reduction::kSum, "nansum", [](Reducer& reduce, ExprId x) {
    return reduce.apply_where(Fn::kNotEqual, x, x, 0, x);
  });
  table["aten::norm"] = vector_norm;
  table["aten::linalg_vector_norm"] = vector_norm;
  for (const char* name : {"_softmax", "softmax"})
    table[std::string("aten::") + name] = softmax(Softmax::kUsual);
  table["aten::_safe_softmax"] = softmax(Softmax::kSafe);
  for (const char* name : {"_log_softmax", "log_softmax"})
    table[std::string("aten::") + name] = softmax(Softmax::kLogarithm);
  table["aten::renorm"] = renorm;
  table["aten::isin"] = is_in;
  table["aten::logsumexp"] = logsumexp;
}

}  // namespace nereid::compiler
