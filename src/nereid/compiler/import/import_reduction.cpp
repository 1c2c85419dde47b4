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
  const auto finish = [](Reducer& reduce, const Axes& axes, ExprId sum) {
    const ExprId share = reduce.constant(Ratio{.over = 1, .under = axes.elements()}, DType::kF32);
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
  const Value body = order == 0   ? (length > 0).cast(length.type())
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

// |x - y| in the norm of an order, of everything.
Status distance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), y = import.tensor(import.arg(1, "other"));
  const double order = import.number(import.arg(2, "p"), 2);
  if (!x || !y || order != 2) return import.cannot("a distance of another order than 2");
  const Extents sizes = import.value(*x).sizes;
  const DType type = compute_type(import.result().dtype);
  const Value a(import.exprs(), import.operand(*x, sizes, type)),
      b(import.exprs(), import.operand(*y, sizes, type));
  const TensorId sum =
      import.temporary(Reduction::kSum, {}, sizes, ((a - b) * (a - b)).id(), type, "distance");
  return import.define(import.results()[0], Value(import.exprs(), import.load(sum, {})).apply(Fn::kSqrt).id(),
                       "distance");
}

// x [.., m, k], y [.., n, k]: the distance of every pair of rows.
Status pairwise_distance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "x1")), y = import.tensor(import.arg(1, "x2"));
  const double order = import.number(import.arg(2, "p"), 2);
  const Extents sizes = import.result().sizes;
  if (!x || !y || order != 2 || import.value(*x).sizes.size() != sizes.size() ||
      import.value(*y).sizes.size() != sizes.size())
    return import.cannot("expected two matrices and the order 2");
  const size_t rank = sizes.size();
  const Extents reduced{import.value(*x).sizes[rank - 1]};
  Extents extents = sizes;
  extents.push_back(reduced[0]);
  auto at_x = dimensions(rank), at_y = dimensions(rank);
  at_y[rank - 2] = at_x[rank - 1];
  at_x[rank - 1] = at_y[rank - 1] = Index::dimension(static_cast<int>(rank));
  const Value difference = Value(import.exprs(), import.read(*x, at_x, extents)) -
                           Value(import.exprs(), import.read(*y, at_y, extents));
  const TensorId sum = import.temporary(Reduction::kSum, sizes, reduced, (difference * difference).id(),
                                        difference.type(), "distance");
  return import.define(import.results()[0],
                       Value(import.exprs(), import.load(sum, dimensions(rank))).apply(Fn::kSqrt).id(),
                       "distance");
}

// x [.., m, k], y [.., n, k]: the distance of every pair of rows by their product, as PyTorch has it for more
// than 25 rows.
Status distance_by_product(Importer& import) {
  const auto x = import.tensor(import.arg(0, "x1")), y = import.tensor(import.arg(1, "x2"));
  const Extents sizes = import.result().sizes;
  if (!x || !y || import.value(*x).sizes.size() != sizes.size() ||
      import.value(*y).sizes.size() != sizes.size())
    return import.cannot("expected two tensors of as many dimensions as the result");
  const size_t rank = sizes.size();
  const Extents reduced{import.value(*x).sizes[rank - 1]};
  const DType type = import.result().dtype;
  Extents extents = sizes;
  extents.push_back(reduced[0]);
  auto at_x = dimensions(rank), at_y = dimensions(rank);
  at_y[rank - 2] = at_x[rank - 1];
  at_x[rank - 1] = at_y[rank - 1] = Index::dimension(static_cast<int>(rank));
  const Value product = Value(import.exprs(), import.read(*x, at_x, extents)) *
                        Value(import.exprs(), import.read(*y, at_y, extents));
  const TensorId products =
      import.temporary(Reduction::kSum, sizes, reduced, product.id(), product.type(), "products");
  const auto squares = [&](trace::ValueId of) {
    const Extents all = import.value(of).sizes, rows(all.begin(), all.end() - 1);
    const Value element(import.exprs(), import.read(of, dimensions(rank), all));
    return import.temporary(Reduction::kSum, rows, reduced, (element * element).id(), element.type(),
                            "squares");
  };
  auto of_x = dimensions(rank - 1), of_y = of_x;
  of_y.back() = Index::dimension(static_cast<int>(rank) - 1);
  const auto load = [&](TensorId tensor, std::vector<Index> at) {
    return Value(import.exprs(), import.load(tensor, std::move(at)));
  };
  const Value square =
      load(squares(*x), of_x) + load(squares(*y), of_y) - load(products, dimensions(rank)) * 2;
  return import.define(import.results()[0], maximum(square, 0).cast(compute_type(type)).apply(Fn::kSqrt).id(),
                       "distance");
}

Status trace_of(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Extents sizes = import.value(x.value()).sizes, reduced{std::min(sizes.at(0), sizes.at(1))};
  const std::vector<Index> at{Index::dimension(0), Index::dimension(0)};
  return import.define_reduction(import.results()[0], Reduction::kSum, {}, reduced,
                                 import.read(*x, at, reduced), "trace");
}

// exp(x - max) over its sum, or the logarithm of that.
OperatorImport softmax(bool logarithm) {
  return [logarithm](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    const Axes axes(import.value(x.value()).sizes, {import.integer(import.arg(1, "dim"), 0)});
    Reducer reduce(import);
    const std::string name = logarithm ? "log_softmax" : "softmax";
    const size_t axis = axes.gone_dims.at(0);
    const ExprId whole = import.without_shift(*x, axis, reduce.element_of_whole(*x));
    const ExprId element = import.exprs().substitute(whole, axes.in_body(), axes.extents());
    const TensorId most = reduce.reduce(Reduction::kMax, axes, element, name + "_max");
    const ExprId exponential =
        reduce.apply(Fn::kExp, reduce.apply(Fn::kSub, element, reduce.kept(most, axes)));
    const TensorId sum = reduce.reduce(Reduction::kSum, axes, exponential, name + "_sum");
    const ExprId shifted = reduce.apply(Fn::kSub, whole, reduce.of_whole(most, axes));
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
  table["aten::dist"] = distance;
  table["aten::_cdist_forward"] = pairwise_distance;
  table["aten::_euclidean_dist"] = distance_by_product;
  table["aten::trace"] = trace_of;
  table["aten::nansum"] = reduction(Reduction::kSum, "nansum", [](Reducer& reduce, ExprId x) {
    return reduce.apply_where(Fn::kNotEqual, x, x, 0, x);
  });
  table["aten::norm"] = vector_norm;
  table["aten::linalg_vector_norm"] = vector_norm;
  table["aten::_softmax"] = softmax(false);
  table["aten::_log_softmax"] = softmax(true);
  table["aten::logsumexp"] = logsumexp;
}

}  // namespace nereid::compiler
