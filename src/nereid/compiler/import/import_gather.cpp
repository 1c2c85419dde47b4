// Elements at places that other elements give: gather, indexing by tensors, embeddings.
#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

// An element of a tensor of integers, as an i64; from behind where it is negative.
ExprId place(Importer& import, trace::ValueId id, const std::vector<Index>& at, const Extents& extents,
             int64_t size = 0) {
  const Value value(import.exprs(), import.exprs().cast(import.read(id, at, extents), DType::kI64));
  return size == 0 ? value.id() : (value < 0).where(value + static_cast<double>(size), value).id();
}

Status gather(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), index = import.tensor(import.arg(2, "index"));
  if (!x || !index) return import.cannot("expected a tensor and indices");
  const Extents sizes = import.result().sizes;
  if (sizes.empty()) return import.cannot("it gathers from a number");
  const size_t axis = axis_of(import.integer(import.arg(1, "dim"), 0), sizes.size());
  auto at = dimensions(sizes.size());
  std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
  further[axis] = place(import, *index, at, sizes);
  at[axis] = Index();
  return import.define(import.results()[0], import.read(*x, at, further, sizes), "gather");
}

Status index_select(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), index = import.tensor(import.arg(2, "index"));
  if (!x || !index) return import.cannot("expected a tensor and indices");
  const Extents sizes = import.result().sizes;
  if (sizes.empty()) return import.cannot("it selects from a number");
  const size_t axis = axis_of(import.integer(import.arg(1, "dim"), 0), sizes.size());
  auto at = dimensions(sizes.size());
  std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
  const std::vector<Index> which(import.value(*index).sizes.size(), at[axis]);
  further[axis] = place(import, *index, which, sizes);
  at[axis] = Index();
  return import.define(import.results()[0], import.read(*x, at, further, sizes), "select");
}

// weight [rows, width], indices [...]: result [..., width]
Status embedding(Importer& import) {
  const auto weight = import.tensor(import.arg(0, "weight")), index = import.tensor(import.arg(1, "indices"));
  if (!weight || !index) return import.cannot("expected a table and indices");
  const Extents sizes = import.result().sizes;
  auto at = dimensions(sizes.size() - 1);
  const ExprId row = place(import, *index, at, sizes);
  const std::vector<Index> element{Index(), Index::dimension(static_cast<int>(sizes.size()) - 1)};
  return import.define(import.results()[0],
                       import.read(*weight, element, {row, import.exprs().integer(0)}, sizes), "embedding");
}

// self[None, i, :, j]: the broadcast dimensions of the indices stand where the first index does, or in front
// where indices are apart.
Status index(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto* list = import.arg(1, "indices");
  if (!x || list == nullptr || !std::holds_alternative<trace::List>(list->node))
    return import.cannot("expected a tensor and indices");
  const Extents sizes = import.result().sizes, in = import.value(*x).sizes;
  std::vector<std::optional<trace::ValueId>> by(in.size());
  const auto& items = std::get<trace::List>(list->node).items;
  size_t rank = 0, first = in.size(), last = 0, count = 0;
  for (size_t d = 0; d < items.size(); ++d) {
    by.at(d) = import.tensor(&items[d]);
    if (!by[d]) continue;
    if (import.value(*by[d]).dtype == DType::kBool)
      return import.cannot("how many elements it takes depends on data");
    rank = std::max(rank, import.value(*by[d]).sizes.size());
    first = std::min(first, d);
    last = d;
    ++count;
  }
  const size_t front = last - first + 1 == count ? first : 0;
  std::vector<Index> at(in.size());
  std::vector<ExprId> further(in.size(), import.exprs().integer(0));
  size_t next = 0;
  for (size_t d = 0; d < in.size(); ++d) {
    if (next == front) next += rank;
    if (!by[d]) {
      at[d] = Index::dimension(static_cast<int>(next++));
      continue;
    }
    const Extents& own = import.value(*by[d]).sizes;
    std::vector<Index> which;
    for (size_t i = 0; i < own.size(); ++i)
      which.push_back(own[i] == 1 ? Index()
                                  : Index::dimension(static_cast<int>(front + rank - own.size() + i)));
    further[d] = place(import, *by[d], which, sizes, in[d]);
  }
  return import.define(import.results()[0], import.read(*x, at, further, sizes), "index");
}

Status take(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self")), index = import.tensor(import.arg(1, "index"));
  if (!x || !index) return import.cannot("expected a tensor and indices");
  const Extents sizes = import.result().sizes, in = import.value(*x).sizes;
  const int64_t count = element_count(in);
  const Value linear(import.exprs(), place(import, *index, dimensions(sizes.size()), sizes, count));
  return import.define(import.results()[0],
                       import.read(*x, std::vector<Index>(in.size()), unraveled(linear, in), sizes), "take");
}

// How many of a sorted row come before each value (with `right`, or are equal): halving, as PyTorch does it.
Status count_before(Importer& import, const trace::Arg* sorted, const trace::Arg* values, bool right) {
  const auto row = import.tensor(sorted);
  if (!row) return import.cannot("expected sorted rows");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.result().sizes, of = import.value(*row).sizes;
  const DType a = compute_type(import.value(*row).dtype);
  const auto id = import.tensor(values);
  const DType type =
      id && trace::is_floating(import.value(*id).dtype) ? compute_type(import.value(*id).dtype) : a;
  if (type != a || of.empty()) return import.cannot("its operands have different types");
  const Value wanted(exprs, import.operand(values, sizes, type));
  const int64_t count = of.back();
  Value before(exprs, exprs.integer(0));
  int64_t step = 1;
  while (step * 2 <= count) step *= 2;
  for (; step > 0; step /= 2) {
    std::vector<Index> at = of.size() == 1 ? std::vector<Index>{} : dimensions(of.size() - 1);
    std::vector<ExprId> further(at.size(), exprs.integer(0));
    at.emplace_back();
    const Value next = before + static_cast<double>(step);
    further.push_back(minimum(next - 1.0, static_cast<double>(count - 1)).id());
    const Value there = Value(exprs, import.read(*row, at, further, sizes)).cast(type);
    const Value passes = negated(there.apply(Fn::kLessEqual, wanted)), reaches = negated(there < wanted);
    // Of a NaN nothing is larger, so that all come before it.
    const Value behind = right ? passes & negated(is_nan(wanted)) : reaches & negated(is_nan(wanted));
    before = (negated(behind) & (next < static_cast<double>(count + 1))).where(next, before);
  }
  return import.define(import.results()[0], before.id(), "count_before");
}

// Where a mask is, the elements of `source` one after the other: how many of the mask came before says which.
Status masked_scatter(Importer& import) {
  const auto mask = import.tensor(import.arg(1, "mask")), source = import.tensor(import.arg(2, "source"));
  if (!mask || !source) return import.cannot("expected a mask and a source");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.result().sizes, of = import.value(*source).sizes, all{element_count(sizes)};
  const Value chosen(exprs, import.operand(*mask, sizes, DType::kBool));
  const TensorId ones =
      import.temporary(Reduction::kNone, sizes, {}, chosen.cast(DType::kI64).id(), DType::kI64, "mask");
  Node count{.sizes = {}, .reduced = all, .reduction = Reduction::kSum};
  count.body = import.load(ones, unravel(Index::dimension(0), sizes, all));
  count.scan = true, count.name = "count", count.at = {Index::dimension(0)};
  const TensorId counts = import.add(std::move(count), DType::kI64, all);
  Index linear;
  const Extents strides = row_major(sizes);
  for (size_t d = 0; d < sizes.size(); ++d)
    linear = linear + Index::dimension(static_cast<int>(d)) * strides[d];
  const Value number = Value(exprs, import.load(counts, {linear})) - 1.0;
  const Value there = clamp(number, 0, static_cast<double>(element_count(of) - 1));
  const Value taken(exprs, import.read(*source, std::vector<Index>(of.size()), unraveled(there, of), sizes));
  const Value self = import.operand(0);
  return import.define(import.results()[0], chosen.where(taken.cast(self.type()), self).id(),
                       "masked_scatter");
}

bool from_right(Importer& import, const trace::Arg* right, const trace::Arg* side) {
  return import.flag(right, false) || import.text(side, "") == "right";
}
Status searchsorted(Importer& import) {
  const auto* sorter = import.arg(5, "sorter");
  if (import.tensor(sorter)) return import.cannot("its rows are sorted by another tensor");
  return count_before(import, import.arg(0, "sorted_sequence"), import.arg(1, "self"),
                      from_right(import, import.arg(3, "right"), import.arg(4, "side")));
}
Status bucketize(Importer& import) {
  return count_before(import, import.arg(1, "boundaries"), import.arg(0, "self"),
                      import.flag(import.arg(3, "right"), false));
}

}  // namespace

void add_gathers(OperatorTable& table) {
  table["aten::searchsorted"] = searchsorted;
  table["aten::bucketize"] = bucketize;
  table["aten::masked_scatter"] = masked_scatter;
  table["aten::gather"] = gather;
  table["aten::index_select"] = index_select;
  table["aten::embedding"] = embedding;
  table["aten::index"] = index;
  table["aten::take"] = take;
}

}  // namespace nereid::compiler
