// Losses: an element's own loss, and how many are put together.
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

enum class Together : int64_t { kNone, kMean, kSum };  // as PyTorch's enumeration counts

// `element` over dimensions of `sizes`, put together as the call says.
Status together(Importer& import, const Extents& sizes, Value element, int64_t how, const std::string& name) {
  if (how == static_cast<int64_t>(Together::kNone))
    return import.define(import.results()[0], element.id(), name);
  if (how == static_cast<int64_t>(Together::kSum))
    return import.define_reduction(import.results()[0], Reduction::kSum, {}, sizes, element.id(), name);
  const TensorId sum =
      import.temporary(Reduction::kSum, {}, sizes, element.id(), element.type(), name + "_sum");
  const Value total(import.exprs(), import.load(sum, {}));
  return import.define(import.results()[0], (total * Ratio{.over = 1, .under = element_count(sizes)}).id(),
                       name);
}

using Loss = std::function<Value(Importer&, Value x, Value target)>;

// `reduction` counts the arguments before that one.
OperatorImport loss(size_t reduction, std::string name, Loss formula) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self")), target = import.tensor(import.arg(1, "target"));
    if (!x || !target) return import.cannot("expected two tensors");
    const Extents sizes = import.value(*x).sizes;
    if (import.value(*target).sizes != sizes) return import.cannot("its operands have different shapes");
    const DType type = compute_type(import.result().dtype);
    const Value a(import.exprs(), import.operand(*x, sizes, type)),
        b(import.exprs(), import.operand(*target, sizes, type));
    return together(import, sizes, formula(import, a, b),
                    import.integer(import.arg(reduction, "reduction"), 1), name);
  };
}

Value smooth_l1(Importer& import, Value x, Value y) {
  const double beta = import.number(import.arg(3, "beta"), 1);
  const Value distance = (x - y).apply(Fn::kAbs);
  if (beta == 0) return distance;
  return (distance < beta).where(distance * distance * (0.5 / beta), distance - 0.5 * beta);
}

Value huber(Importer& import, Value x, Value y) {
  const double delta = import.number(import.arg(3, "delta"), 1);
  const Value distance = (x - y).apply(Fn::kAbs);
  return (distance < delta).where(distance * distance * 0.5, (distance - 0.5 * delta) * delta);
}

Value weighted(Importer& import, Value loss, size_t position) {
  const auto weight = import.tensor(import.arg(position, "weight"));
  if (!weight) return loss;
  const Extents sizes = import.value(*import.tensor(import.arg(0, "self"))).sizes;
  return loss * Value(import.exprs(), import.operand(*weight, sizes, loss.type()));
}

// The logarithms no less than -100, as PyTorch has it.
Value binary_cross_entropy(Importer& import, Value x, Value y) {
  const Value yes = maximum(x.apply(Fn::kLog), -100), no = maximum((-x).apply(Fn::kLog1p), -100);
  return weighted(import, (y - 1.0) * no - y * yes, 2);
}

// (1 - y) x + (1 + (pos_weight - 1) y) (log(1 + exp(-|x|)) + max(-x, 0))
Value binary_cross_entropy_with_logits(Importer& import, Value x, Value y) {
  const Value small = (-x.apply(Fn::kAbs)).apply(Fn::kExp).apply(Fn::kLog1p) + maximum(-x, 0);
  Value factor = y.constant(1);
  if (const auto positive = import.tensor(import.arg(3, "pos_weight"))) {
    const Extents sizes = import.value(*import.tensor(import.arg(0, "self"))).sizes;
    factor = (Value(import.exprs(), import.operand(*positive, sizes, y.type())) - 1.0) * y + 1.0;
  }
  return weighted(import, (y.constant(1) - y) * x + factor * small, 2);
}

Value soft_margin(Importer&, Value x, Value y) { return (-(x * y)).apply(Fn::kExp).apply(Fn::kLog1p); }

// -weight[target] x[target], put together by the sum of weights. Classes stand in dimension 1, or 0 where
// there is but one element.
Status nll_loss(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), target = import.tensor(import.arg(1, "target"));
  const auto weight = import.tensor(import.arg(2, "weight"));
  const int64_t how = import.integer(import.arg(3, "reduction"), 1),
                ignored = import.integer(import.arg(4, "ignore_index"), -100);
  const Extents in = import.value(x.value()).sizes, sizes = import.value(target.value()).sizes;
  const DType type = compute_type(import.value(*x).dtype);
  const size_t axis = in.size() > 1 ? 1 : 0;
  const Value wanted(import.exprs(),
                     import.exprs().cast(import.read(*target, dimensions(sizes.size()), sizes), DType::kI64));
  const Value skipped = equal(wanted, static_cast<double>(ignored));
  const Value which = skipped.where(wanted.constant(0), wanted);
  std::vector<Index> at = dimensions(sizes.size());
  if (in.size() == 1) at.clear();
  at.insert(at.begin() + static_cast<ptrdiff_t>(axis), Index());
  std::vector<ExprId> further(in.size(), import.exprs().integer(0));
  further[axis] = which.id();
  const Value found(import.exprs(), import.exprs().cast(import.read(*x, at, further, sizes), type));
  Value share = found.constant(1);
  if (weight)
    share = Value(import.exprs(),
                  import.exprs().cast(import.read(*weight, {Index()}, {which.id()}, sizes), type));
  share = skipped.where(share.constant(0), share);
  const Value element = skipped.where(found.constant(0), -(found * share));
  if (how == static_cast<int64_t>(Together::kNone))
    return import.define(import.results()[0], element.id(), "nll_loss");
  const TensorId sum = import.temporary(Reduction::kSum, {}, sizes, element.id(), type, "nll_loss_sum");
  const TensorId shares = import.temporary(Reduction::kSum, {}, sizes, share.id(), type, "weight_sum");
  const Value total(import.exprs(), import.load(sum, {})), count(import.exprs(), import.load(shares, {}));
  if (import.results().size() > 1)
    NEREID_TRY_STATUS(import.define(import.results()[1], count.id(), "total_weight"));
  return import.define(import.results()[0],
                       (how == static_cast<int64_t>(Together::kMean) ? total / count : total).id(),
                       "nll_loss");
}

// The mean over classes j that are not the target of max(0, margin - x[target] + x[j])^p.
Status multi_margin(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), target = import.tensor(import.arg(1, "target"));
  const double p = import.number(import.arg(2, "p"), 1), margin = import.number(import.arg(3, "margin"), 1);
  const Extents in = import.value(x.value()).sizes;
  if (in.size() != 2 || import.tensor(import.arg(4, "weight")))
    return import.cannot("expected a batch without weights");
  const DType type = compute_type(import.value(*x).dtype);
  const Value wanted(
      import.exprs(),
      import.exprs().cast(import.read(target.value(), {Index::dimension(0)}, in), DType::kI64));
  const Value mine(import.exprs(), import.exprs().cast(import.read(*x, dimensions(2), in), type));
  const Value right(import.exprs(),
                    import.exprs().cast(import.read(*x, {Index::dimension(0), Index()},
                                                    {import.exprs().integer(0), wanted.id()}, in),
                                        type));
  Value loss = maximum(mine - right + margin, 0);
  if (p == 2) loss = loss * loss;
  const Value column(import.exprs(), import.exprs().index(Index::dimension(1)));
  loss = equal(column, wanted).where(loss.constant(0), loss);
  const TensorId sum =
      import.temporary(Reduction::kSum, {in[0]}, {in[1]}, loss.id(), type, "multi_margin_sum");
  const Value each =
      Value(import.exprs(), import.load(sum, dimensions(1))) * Ratio{.over = 1, .under = in[1]};
  return together(import, {in[0]}, each, import.integer(import.arg(5, "reduction"), 1), "multi_margin");
}

// The mean over classes of max(0, 1 - x[y[j]] + x[i]), over the targets y[j] before the first negative one
// and all classes i that are none of them.
Status multilabel_margin(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), target = import.tensor(import.arg(1, "target"));
  if (!x || !target) return import.cannot("expected two tensors");
  Exprs& exprs = import.exprs();
  const Extents in = import.value(*x).sizes, batch(in.begin(), in.end() - 1);
  const Size classes = in.back();
  const auto rank = static_cast<int>(batch.size());
  const DType type = compute_type(import.value(*x).dtype);
  Extents pairs = in;
  pairs.push_back(classes);
  const auto row = dimensions(batch.size());
  const auto at = [&](int dimension) {
    auto index = row;
    index.push_back(Index::dimension(dimension));
    return index;
  };
  const auto target_at = [&](int dimension, const Extents& extents) {
    return Value(exprs, exprs.cast(import.read(*target, at(dimension), extents), DType::kI64));
  };
  const auto number = [&](int dimension) {
    return Value(exprs, exprs.index(Index::dimension(dimension))).cast(DType::kI32);
  };
  const Value place = number(rank);
  const Value ends = (target_at(rank, in) < 0).where(place, place.constant(static_cast<double>(classes)));
  const TensorId end = import.temporary(Reduction::kMin, batch, {classes}, ends.id(), DType::kI32, "end");
  const Value before = Value(exprs, import.load(end, row));
  const Value hits = (number(rank + 1) < before) & equal(target_at(rank + 1, pairs).cast(DType::kI32), place);
  const TensorId hit =
      import.temporary(Reduction::kMax, in, {classes}, hits.cast(DType::kI32).id(), DType::kI32, "is_target");
  // Over targets, then classes.
  const Value wanted = maximum(target_at(rank, pairs), 0);
  std::vector<ExprId> further(in.size(), exprs.integer(0));
  further.back() = wanted.id();
  auto open = row;
  open.emplace_back();
  const Value right(exprs, exprs.cast(import.read(*x, open, further, pairs), type));
  const Value other(exprs, exprs.cast(import.read(*x, at(rank + 1), pairs), type));
  const Value is_other = equal(Value(exprs, import.load(hit, at(rank + 1))), 0);
  const Value loss = maximum(other - right + 1.0, 0);
  const Value counted = ((number(rank) < before) & is_other).where(loss, loss.constant(0));
  const TensorId sum = import.temporary(Reduction::kSum, batch, {classes, classes}, counted.id(), type,
                                        "multilabel_margin_sum");
  const Value each = Value(exprs, import.load(sum, row)) * Ratio{.over = 1, .under = classes};
  if (import.results().size() > 1)
    NEREID_TRY_STATUS(import.define(import.results()[1],
                                    exprs.cast(import.load(hit, dimensions(in.size())), type), "is_target"));
  return together(import, batch, each, import.integer(import.arg(2, "reduction"), 1), "multilabel_margin");
}

}  // namespace

void add_losses(OperatorTable& table) {
  table["aten::mse_loss"] =
      loss(2, "mse_loss", [](Importer&, Value x, Value y) { return (x - y) * (x - y); });
  table["aten::smooth_l1_loss"] = loss(2, "smooth_l1", smooth_l1);
  table["aten::huber_loss"] = loss(2, "huber", huber);
  table["aten::binary_cross_entropy"] = loss(3, "binary_cross_entropy", binary_cross_entropy);
  table["aten::binary_cross_entropy_with_logits"] =
      loss(4, "binary_cross_entropy", binary_cross_entropy_with_logits);
  table["aten::soft_margin_loss"] = loss(2, "soft_margin", soft_margin);
  for (const char* name : {"nll_loss_forward", "nll_loss2d_forward"})
    table[std::string("aten::") + name] = nll_loss;
  table["aten::multi_margin_loss"] = multi_margin;
  for (const char* name : {"multilabel_margin_loss", "multilabel_margin_loss_forward"})
    table[std::string("aten::") + name] = multilabel_margin;
}

}  // namespace nereid::compiler
