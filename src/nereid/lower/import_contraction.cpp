// Matrix products and convolutions as sums of products.
#include <cmath>

#include "nereid/lower/import.h"

namespace nereid::lower {
namespace {

// The element of a factor at an index, in float32 (or float64).
ExprId element(Importer& import, trace::ValueId id, const std::vector<Index>& at, const Extents& extents) {
  const ExprId read = import.read(id, at, extents);
  return import.exprs().cast(read, compute_type(import.value(id).dtype));
}

// sum over k of a[..., m, k] * b[..., k, n]; `from` counts the arguments before a.
Status product(Importer& import, trace::ValueId a, trace::ValueId b, const std::vector<Index>& at_a,
               const std::vector<Index>& at_b, const Extents& sizes, int64_t k, const ExprId bias,
               double alpha, const std::string& name) {
  import.contraction_under("matmul.allow_tf32");
  Extents extents = sizes;
  extents.push_back(k);
  const ExprId x = element(import, a, at_a, extents), y = element(import, b, at_b, extents);
  const auto result = import.results().at(0);
  const ExprId body = import.exprs().apply(Fn::kMul, {x, y});
  if (bias < 0 && alpha == 1) return import.define_reduction(result, Reduction::kSum, sizes, {k}, body, name);
  const DType stored = import.value(result).dtype;
  const TensorId sum = import.temporary(Reduction::kSum, sizes, {k}, body, stored, name);
  ExprId total = import.load(sum, dimensions(sizes.size()));
  if (alpha != 1)
    total =
        import.exprs().apply(Fn::kMul, {total, import.exprs().constant(alpha, import.exprs()[total].type)});
  if (bias >= 0) total = import.exprs().apply(Fn::kAdd, {total, bias});
  return import.define(result, total, name);
}

Index d(size_t dimension) { return Index::dimension(static_cast<int>(dimension)); }

// mm, bmm: any number of batches before the matrices.
OperatorImport matrix_product(size_t first, const char* name) {
  return [first, name](Importer& import) -> Status {
    const auto a = import.tensor(import.arg(first, "self")), b = import.tensor(import.arg(first + 1, "mat2"));
    if (!a || !b) return import.cannot("expected two matrices");
    const Extents sizes = import.value(import.results().at(0)).sizes;
    const size_t rank = sizes.size();
    if (import.value(*a).sizes.size() != rank || import.value(*b).sizes.size() != rank || rank < 2)
      return import.cannot("expected two matrices");
    auto at_a = dimensions(rank), at_b = dimensions(rank);
    at_a[rank - 1] = d(rank);
    at_b[rank - 2] = d(rank);
    ExprId bias = -1;
    double alpha = 1;
    if (first == 1) {  // addmm, baddbmm: beta * self + alpha * product
      const DType type = compute_type(import.value(import.results().at(0)).dtype);
      bias = import.operand(import.arg(0, "self"), sizes, type);
      const double beta = import.number(import.arg(3, "beta"), 1);
      alpha = import.number(import.arg(4, "alpha"), 1);
      if (beta != 1) bias = import.exprs().apply(Fn::kMul, {bias, import.exprs().constant(beta, type)});
    }
    return product(import, *a, *b, at_a, at_b, sizes, import.value(*a).sizes[rank - 1], bias, alpha, name);
  };
}

// x [..., k], weight [n, k], bias [n]
Status linear(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input")), weight = import.tensor(import.arg(1, "weight"));
  if (!x || !weight || import.value(*weight).sizes.size() != 2)
    return import.cannot("expected a matrix of weights");
  const Extents sizes = import.value(import.results().at(0)).sizes;
  const size_t rank = sizes.size();
  auto at_x = dimensions(rank);
  at_x[rank - 1] = d(rank);
  ExprId bias = -1;
  if (const auto given = import.tensor(import.arg(2, "bias"))) {
    bias = import.operand(*given, sizes, compute_type(import.value(import.results().at(0)).dtype));
  }
  return product(import, *x, *weight, at_x, {d(rank - 1), d(rank)}, sizes, import.value(*weight).sizes[1],
                 bias, 1, "linear");
}

// x [n, c, area...], weight [o, c / groups, window...]: not transposed.
Status convolution(Importer& import) {
  const auto x = import.tensor(import.arg(0, "input")), weight = import.tensor(import.arg(1, "weight"));
  const auto result = import.results().at(0);
  if (!x || !weight) return import.cannot("expected an input and weights");
  if (import.flag(import.arg(6, "transposed"), false)) return import.cannot("it is transposed");
  const Extents sizes = import.value(result).sizes, in = import.value(*x).sizes,
                window = import.value(*weight).sizes;
  const size_t rank = sizes.size(), area = rank - 2;
  const auto stride = import.integers(import.arg(3, "stride")),
             padding = import.integers(import.arg(4, "padding")),
             dilation = import.integers(import.arg(5, "dilation"));
  const int64_t groups = import.integer(import.arg(8, "groups"), 1);
  const auto of = [](const std::vector<int64_t>& list, size_t i) {
    return list.size() == 1 ? list[0] : list.at(i);
  };
  import.contraction_under("cudnn.allow_tf32");
  // Dimensions: the result's, then channels of the group, then the window.
  Extents reduced{window[1]};
  reduced.insert(reduced.end(), window.begin() + 2, window.end());
  Extents extents = sizes;
  extents.insert(extents.end(), reduced.begin(), reduced.end());
  const int64_t per_group = sizes[1] / groups;
  std::vector<Index> at_x{d(0), quotient(d(1), per_group, extents) * window[1] + d(rank)},
      at_w{d(1), d(rank)};
  ExprId inside = -1;
  for (size_t i = 0; i < area; ++i) {
    const Index at = d(2 + i) * of(stride, i) + d(rank + 1 + i) * of(dilation, i) - Index(of(padding, i));
    const ExprId within = import.exprs().within(at, 0, in[2 + i], extents);
    inside = inside < 0 ? within : import.exprs().apply(Fn::kAnd, {inside, within});
    at_x.push_back(at);
    at_w.push_back(d(rank + 1 + i));
  }
  ExprId value = element(import, *x, at_x, extents);
  const ExprId scale = element(import, *weight, at_w, extents);
  if (inside >= 0)
    value = import.exprs().apply(Fn::kWhere,
                                 {inside, value, import.exprs().constant(0, import.exprs()[value].type)});
  const ExprId body = import.exprs().apply(Fn::kMul, {value, scale});
  const auto bias = import.tensor(import.arg(2, "bias"));
  if (!bias) return import.define_reduction(result, Reduction::kSum, sizes, reduced, body, "convolution");
  const TensorId sum =
      import.temporary(Reduction::kSum, sizes, reduced, body, import.value(result).dtype, "convolution");
  const ExprId shift = import.read(*bias, {d(1)}, sizes);
  const ExprId total = import.load(sum, dimensions(rank));
  return import.define(
      result, import.exprs().apply(Fn::kAdd, {total, import.exprs().cast(shift, import.exprs()[total].type)}),
      "convolution");
}

}  // namespace

void add_contractions(OperatorTable& table) {
  table["aten::mm"] = matrix_product(0, "matmul");
  table["aten::bmm"] = matrix_product(0, "matmul");
  table["aten::matmul"] = matrix_product(0, "matmul");
  table["aten::addmm"] = matrix_product(1, "matmul");
  table["aten::baddbmm"] = matrix_product(1, "matmul");
  table["aten::linear"] = linear;
  table["aten::convolution"] = convolution;
}

}  // namespace nereid::lower
