// Distances between two tensors, and between all rows of two matrices.
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

// The norm of `difference` over `reduced`, which come after `sizes`, as an element of `sizes`. `of_pairs`: as
// PyTorch's kernel for rows has it, whose largest element is never a NaN.
Value norm_of(Importer& import, Value difference, const Extents& sizes, const Extents& reduced, double order,
              bool of_pairs) {
  const bool largest = std::isinf(order);
  const Value distance = difference.apply(Fn::kAbs);
  const Value size = largest && of_pairs ? is_nan(distance).where(distance.constant(0), distance) : distance;
  const Value body = largest      ? size
                     : order == 0 ? negated(equal(size, 0)).cast(size.type())
                     : order == 1 ? size
                     : order == 2 ? difference * difference
                                  : size.apply(Fn::kPow, size.constant(order));
  const Reduction kind = !largest ? Reduction::kSum : order > 0 ? Reduction::kMax : Reduction::kMin;
  const TensorId sum = import.temporary(kind, sizes, reduced, body.id(), body.type(), "distance");
  const Value total(import.exprs(), import.load(sum, dimensions(sizes.size())));
  if (largest || order == 0 || order == 1) return total;
  return order == 2 ? total.apply(Fn::kSqrt) : total.apply(Fn::kPow, total.constant(1 / order));
}

// |x - y| in the norm of an order, of everything.
Status distance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), y = import.tensor(import.arg(1, "other"));
  if (!x || !y) return import.cannot("expected two tensors");
  const Extents sizes = import.value(*x).sizes;
  if (import.value(*y).sizes != sizes) return import.cannot("its operands have different shapes");
  const DType type = compute_type(import.result().dtype);
  const Value a(import.exprs(), import.operand(*x, sizes, type)),
      b(import.exprs(), import.operand(*y, sizes, type));
  const Value norm = norm_of(import, a - b, {}, sizes, import.number(import.arg(2, "p"), 2), false);
  return import.define(import.results()[0], norm.id(), "distance");
}

// x [.., m, k], y [.., n, k]: the distance of every pair of rows.
Status pairwise_distance(Importer& import) {
  const auto x = import.tensor(import.arg(0, "x1")), y = import.tensor(import.arg(1, "x2"));
  const Extents sizes = import.result().sizes;
  if (!x || !y || import.value(*x).sizes.size() != sizes.size() ||
      import.value(*y).sizes.size() != sizes.size())
    return import.cannot("expected two matrices");
  const size_t rank = sizes.size();
  const Extents reduced{import.value(*x).sizes[rank - 1]};
  Extents extents = sizes;
  extents.push_back(reduced[0]);
  auto at_x = dimensions(rank), at_y = dimensions(rank);
  at_y[rank - 2] = at_x[rank - 1];
  at_x[rank - 1] = at_y[rank - 1] = Index::dimension(static_cast<int>(rank));
  const Value difference = Value(import.exprs(), import.read(*x, at_x, extents)) -
                           Value(import.exprs(), import.read(*y, at_y, extents));
  const Value norm = norm_of(import, difference, sizes, reduced, import.number(import.arg(2, "p"), 2), true);
  return import.define(import.results()[0], norm.id(), "distance");
}

// x [n, k]: the distances of rows i < j, one after the other: pair p counts i from the end by a root.
Status distances_of_pairs(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x) return import.cannot("expected a matrix");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.result().sizes, in = import.value(*x).sizes, reduced{in.at(1)},
                extents{sizes.at(0), in[1]};
  const auto n = static_cast<double>(in[0]);
  const Value pair = Value(exprs, exprs.index(Index::dimension(0))).cast(DType::kF64);
  const Value behind = (pair * -8.0 + (4 * n * (n - 1) - 7)).apply(Fn::kSqrt) * 0.5 - 0.5;
  const Value row = (-behind.apply(Fn::kFloor) + (n - 2)).cast(DType::kI64);
  const Value before = (row * (-row + (2 * n - 1))).apply(Fn::kIntDiv, row.constant(2));
  const Value column = Value(exprs, exprs.index(Index::dimension(0))) - before + row + 1.0;
  const std::vector<Index> at{Index(), Index::dimension(1)};
  const Value a(exprs, import.read(*x, at, {row.id(), exprs.integer(0)}, extents)),
      b(exprs, import.read(*x, at, {column.id(), exprs.integer(0)}, extents));
  const Value norm = norm_of(import, a - b, sizes, reduced, import.number(import.arg(1, "p"), 2), true);
  return import.define(import.results()[0], norm.id(), "distance");
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

}  // namespace

void add_distances(OperatorTable& table) {
  table["aten::dist"] = distance;
  table["aten::_cdist_forward"] = pairwise_distance;
  table["aten::_pdist_forward"] = distances_of_pairs;
  table["aten::_euclidean_dist"] = distance_by_product;
}

}  // namespace nereid::compiler
