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
  std::vector<ExprId> further(in.size());
  Value left = linear;
  for (size_t d = in.size(); d-- > 0;) {
    const Value size = left.constant(static_cast<double>(in[d]));
    const Value next = left.apply(Fn::kIntDiv, size);
    further[d] = d == 0 ? left.id() : (left - next * size).id();
    left = next;
  }
  return import.define(import.results()[0], import.read(*x, std::vector<Index>(in.size()), further, sizes),
                       "take");
}

}  // namespace

void add_gathers(OperatorTable& table) {
  table["aten::gather"] = gather;
  table["aten::index_select"] = index_select;
  table["aten::embedding"] = embedding;
  table["aten::index"] = index;
  table["aten::take"] = take;
}

}  // namespace nereid::compiler
