// How often values occur: histograms, and the value that is there most often.
#include <limits>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

constexpr double kMaxCounts = double{1 << 30} * 64;  // bins times elements; pairs of all rows

// Every bin counts all elements that are its own. As PyTorch on a GPU, (x - low) bins / (high - low).
Status histogram(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x) return import.cannot("expected a tensor");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.value(*x).sizes;
  const DType type = compute_type(import.value(*x).dtype);
  const int64_t bins = import.result().sizes.at(0);
  if (static_cast<double>(bins) * static_cast<double>(element_count(sizes)) > kMaxCounts)
    return import.cannot("too many bins for so many elements");
  Value low(exprs, exprs.constant(import.number(import.arg(2, "min"), 0), type));
  Value high(exprs, exprs.constant(import.number(import.arg(3, "max"), 0), type));
  if (low.id() == high.id()) {  // between the least and the largest element
    const Value element(exprs, exprs.cast(import.read(*x, dimensions(sizes.size()), sizes), type));
    const auto extreme = [&](Reduction kind, const char* name) {
      const TensorId found = import.temporary(kind, {}, sizes, element.id(), type, name);
      return Value(exprs, import.load(found, {}));
    };
    const Value least = extreme(Reduction::kMin, "least"), most = extreme(Reduction::kMax, "most");
    const Value same = equal(least, most);
    low = same.where(least - 1.0, least), high = same.where(most + 1.0, most);
  }
  Extents extents = {bins};
  extents.insert(extents.end(), sizes.begin(), sizes.end());
  const Value element(exprs, exprs.cast(import.read(*x, dimensions(sizes.size(), 1), extents), type));
  const Value inside = negated(element < low) & negated(high < element) & equal(element, element);
  const Value place = ((element - low) * static_cast<double>(bins) / (high - low)).apply(Fn::kFloor);
  const Value bin = minimum(place, static_cast<double>(bins - 1));
  const Value own = Value(exprs, exprs.index(Index::dimension(0))).cast(type);
  const Value counted = (inside & equal(bin, own)).where(own.constant(1), own.constant(0));
  return import.define_reduction(import.results()[0], Reduction::kSum, {bins}, sizes, counted.id(), "histc");
}

// Of the values that are in a row most often the least, and its last place. All pairs of a row are compared.
Status mode(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x || import.value(*x).sizes.empty()) return import.cannot("expected rows");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.value(*x).sizes;
  const size_t axis = axis_of(import.integer(import.arg(1, "dim"), -1), sizes.size());
  const DType type = compute_type(import.value(*x).dtype);
  const bool keeps = import.flag(import.arg(2, "keepdim"), false);
  const Size count = sizes[axis];
  if (static_cast<double>(element_count(sizes)) * static_cast<double>(count) > kMaxCounts ||
      type == DType::kBool)
    return import.cannot("too many pairs of elements, or booleans");
  Extents batch = sizes;
  batch.erase(batch.begin() + static_cast<ptrdiff_t>(axis));
  const auto rank = static_cast<int>(batch.size());
  Extents row = batch, pairs;
  row.push_back(count), pairs = row, pairs.push_back(count);
  // The element of a row whose place is that dimension, over the batch and others behind it.
  const auto element = [&](int place, const Extents& extents) {
    std::vector<Index> at = dimensions(batch.size());
    at.insert(at.begin() + static_cast<ptrdiff_t>(axis), Index::dimension(place));
    return Value(exprs, exprs.cast(import.read(*x, at, extents), type));
  };
  const Value equals = equal(element(rank, pairs), element(rank + 1, pairs)).cast(DType::kI32);
  const TensorId counts = import.temporary(Reduction::kSum, row, {count}, equals.id(), DType::kI32, "count");
  const Value often(exprs, import.load(counts, dimensions(row.size())));
  const TensorId most = import.temporary(Reduction::kMax, batch, {count}, often.id(), DType::kI32, "most");
  const Value is_mode = equal(often, Value(exprs, import.load(most, dimensions(batch.size()))));
  const Value own = element(rank, row);
  const double none = trace::is_floating(type) ? std::numeric_limits<double>::infinity()
                                               : static_cast<double>(std::numeric_limits<int32_t>::max());
  if (type == DType::kI64) return import.cannot("of 64-bit integers");
  const TensorId least = import.temporary(Reduction::kMin, batch, {count},
                                          is_mode.where(own, own.constant(none)).id(), type, "mode");
  const Value value(exprs, import.load(least, dimensions(batch.size())));
  const Value place = Value(exprs, exprs.index(Index::dimension(rank))).cast(DType::kI32);
  const Value at_mode = is_mode & equal(own, value);
  const TensorId last = import.temporary(Reduction::kMax, batch, {count},
                                         at_mode.where(place, place.constant(0)).id(), DType::kI32, "place");
  std::vector<Index> at = dimensions(batch.size());
  if (keeps)  // over the results' own dimensions
    for (size_t d = axis; d < at.size(); ++d) at[d] = Index::dimension(static_cast<int>(d) + 1);
  NEREID_TRY_STATUS(import.define(import.results().at(0), import.load(least, at), "mode"));
  return import.define(import.results().at(1), exprs.cast(import.load(last, at), DType::kI64), "mode_place");
}

}  // namespace

void add_counts(OperatorTable& table) {
  table["aten::histc"] = histogram;
  table["aten::mode"] = mode;
}

}  // namespace nereid::compiler
