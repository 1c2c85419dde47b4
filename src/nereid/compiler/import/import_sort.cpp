// Sorting, the largest few, medians: by counting. The rank of an element is the number of those that come
// before it (a NaN comes after every number, equals in their order), and the element of rank p stands at
// place p.
//
// Every pair of a row is compared, so a long row is cut into chunks where only few of it are wanted: the
// first k of each chunk are the candidates of the next round.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kChunk = 1024;       // of a row that is longer than twice this
constexpr double kMaxPairs = 1 << 30;  // times 64: of all rows together

// Rows of some values, and where each stood in the row that was given.
struct Column {
  TensorId values = -1;  // [batch..., count]
  TensorId places = -1;  // the same; -1: each where it stands
  int64_t count = 0;
};

class Sorter {
 public:
  Sorter(Importer& import, trace::ValueId x, size_t axis, bool descending)
      : import_(import), exprs_(import.exprs()), axis_(axis), descending_(descending) {
    sizes_ = import.value(x).sizes;
    type_ = import.value(x).dtype;
    auto at = dimensions(sizes_.size());
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (d != axis) batch_.push_back(sizes_[d]);
    // The batch in front, the row after it.
    Extents extents = with(batch_, row_length());
    for (size_t d = 0, next = 0; d < sizes_.size(); ++d) at[d] = dim(d == axis ? batch_.size() : next++);
    if (sizes_.empty()) extents = {1};
    all_.values =
        import.temporary(Reduction::kNone, extents, {},
                         import.read(x, sizes_.empty() ? std::vector<Index>{} : at, extents), type_, "row");
    all_.count = row_length();
  }

  Size row_length() const { return sizes_.empty() ? Size(1) : sizes_[axis_]; }
  bool small(int64_t wanted) const {
    const auto n = static_cast<double>(row_length());
    const double others = std::min(n, wanted < row_length() ? 2.0 * kChunk : n);
    return static_cast<double>(element_count(batch_)) * n * others <= 64 * kMaxPairs;
  }

  // Where the element of every rank below `wanted` stands: [batch..., wanted].
  TensorId places(int64_t wanted) {
    Column left = all_;
    while (trace::is_floating(type_) && left.count > 2 * kChunk && wanted < kChunk / 2)
      left = round(left, kChunk, wanted);
    return round(left, left.count, wanted).places;
  }
  // The element that stands at an i64 of [batch...] and other dimensions behind.
  Value at_place(Value place) { return load(all_.values, batch_index(), place); }
  // How many of a row are NaN: [batch...].
  TensorId nans() {
    std::vector<Index> at = batch_index();
    at.push_back(dim(batch_.size()));
    const Value x(exprs_, import_.load(all_.values, at));
    return import_.temporary(Reduction::kSum, batch_, {row_length()}, is_nan(x).cast(DType::kI64).id(),
                             DType::kI64, "nans");
  }
  // The rank of each element in its row.
  TensorId ranks() { return ranks_of(all_, row_length()); }
  // The place of the element whose rank is `wanted`, an i64 of [batch...].
  TensorId place_of(TensorId ranks, Value wanted) {
    std::vector<Index> at = batch_index();
    at.push_back(dim(batch_.size()));
    const Value rank(exprs_, import_.load(ranks, at)), own(exprs_, exprs_.index(dim(batch_.size())));
    const Value is = equal(rank.cast(DType::kI64), wanted);
    return import_.temporary(Reduction::kSum, batch_, {row_length()}, (is.cast(DType::kI64) * own).id(),
                             DType::kI64, "place");
  }
  const Extents& batch() const { return batch_; }
  size_t axis() const { return axis_; }
  std::vector<Index> batch_index() const { return dimensions(batch_.size()); }

 private:
  static Index dim(size_t d) { return Index::dimension(static_cast<int>(d)); }
  static Extents with(Extents sizes, int64_t more) {
    sizes.push_back(more);
    return sizes;
  }

  // Element `place` (an i64) of a row.
  Value load(TensorId tensor, std::vector<Index> at, Value place) {
    const DType stored = tensor == all_.values || places_of_.contains(tensor) ? type_of(tensor) : type_;
    std::vector<ExprId> further(at.size(), exprs_.integer(0));
    at.emplace_back();
    further.push_back(place.id());
    return Value(exprs_, exprs_.load(tensor, std::move(at), stored, std::move(further)));
  }
  DType type_of(TensorId tensor) const { return places_of_.contains(tensor) ? DType::kI64 : type_; }

  Value less(Value a, Value b) const {
    if (!trace::is_floating(type_)) return a < b;
    return (a < b) | (is_nan(b) & negated(is_nan(a)));
  }
  Value same(Value a, Value b) const {
    if (!trace::is_floating(type_)) return equal(a, b);
    return equal(a, b) | (is_nan(a) & is_nan(b));
  }

  TensorId ranks_of(const Column& of, int64_t chunk) {
    const size_t b = batch_.size();
    const Extents rows = with(batch_, of.count), extents = with(rows, chunk);
    std::vector<Index> own = batch_index(), other = own;
    const Index i = dim(b), j = dim(b + 1);
    const Index there = chunk == of.count ? j : quotient(i, chunk, extents) * chunk + j;
    own.push_back(i);
    other.push_back(there);
    const Value mine(exprs_, import_.load(of.values, own)), theirs(exprs_, import_.load(of.values, other));
    const Value earlier(exprs_, exprs_.within(there - i, -(int64_t{1} << 40), 0, extents));
    const Value first = descending_ ? less(mine, theirs) : less(theirs, mine);
    const Value before =
        (first | (same(mine, theirs) & earlier)) & Value(exprs_, exprs_.within(there, 0, of.count, extents));
    return import_.temporary(Reduction::kSum, rows, {chunk}, before.cast(DType::kI32).id(), DType::kI32,
                             "rank");
  }

  // The first `wanted` of each chunk, one chunk after the other.
  Column round(const Column& of, int64_t chunk, int64_t wanted) {
    const size_t b = batch_.size();
    const TensorId ranks = ranks_of(of, chunk);
    const int64_t chunks = (of.count + chunk - 1) / chunk;
    Column made{.count = chunks * wanted};
    const Extents rows = with(batch_, made.count), extents = with(rows, chunk);
    const Index c = quotient(dim(b), wanted, extents), p = remainder(dim(b), wanted, extents);
    const Index there = c * chunk + dim(b + 1);
    std::vector<Index> at = batch_index();
    at.push_back(there);
    const Value inside(exprs_, exprs_.within(there, 0, of.count, extents));
    const Value rank(exprs_, import_.load(ranks, at)), place(exprs_, exprs_.index(p));
    const Value is = equal(rank, place.cast(DType::kI32)) & inside;
    const Value number = is.cast(DType::kI64) * Value(exprs_, exprs_.index(there));
    const TensorId found =
        import_.temporary(Reduction::kSum, rows, {chunk}, number.id(), DType::kI64, "place");
    places_of_.insert(found);
    std::vector<Index> own = batch_index();
    own.push_back(dim(b));
    const Value position(exprs_, import_.load(found, own));
    // A chunk may have fewer than are wanted: what comes last stands for the rest.
    const Value exists(exprs_, exprs_.within(c * chunk + p, 0, of.count, rows));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (chunks > 1 || of.places >= 0) {
      const Value value = load(of.values, batch_index(), position).cast(compute_type(type_));
      const Value worst = value.constant(descending_ ? -kInfinity : std::nan(""));
      made.values =
          import_.temporary(Reduction::kNone, rows, {}, exists.where(value, worst).id(), type_, "candidates");
    }
    made.places = found;
    if (of.places >= 0) {
      const Value before = load(of.places, batch_index(), position);
      made.places = import_.temporary(Reduction::kNone, rows, {}, before.id(), DType::kI64, "place");
      places_of_.insert(made.places);
    }
    return made;
  }

  Importer& import_;
  Exprs& exprs_;
  size_t axis_;
  bool descending_;
  Extents sizes_, batch_;
  DType type_ = DType::kF32;
  Column all_;
  std::set<TensorId> places_of_;
};

// Values and places of the first `wanted` along an axis.
Status first_of(Importer& import, trace::ValueId x, int64_t dim, bool descending, int64_t wanted,
                const std::string& name, bool only_places = false) {
  const Extents sizes = import.value(x).sizes;
  if (sizes.empty()) return import.cannot("it sorts a number");
  Sorter sorter(import, x, axis_of(dim, sizes.size()), descending);
  if (!sorter.small(wanted)) return import.cannot("its rows are too long to compare all pairs");
  const TensorId places = sorter.places(wanted);
  std::vector<Index> at, batch;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != sorter.axis()) batch.push_back(Index::dimension(static_cast<int>(d)));
  at = batch;
  at.push_back(Index::dimension(static_cast<int>(sorter.axis())));
  const Value place(import.exprs(), import.load(places, at));
  if (only_places) return import.define(import.results().at(0), place.id(), name);
  auto where = dimensions(sizes.size());
  where[sorter.axis()] = Index();
  std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
  further[sorter.axis()] = place.id();
  NEREID_TRY_STATUS(
      import.define(import.results().at(0), import.read(x, where, further, import.result().sizes), name));
  if (import.results().size() < 2) return ok_status();
  return import.define(import.results()[1], place.id(), name + "_index");
}

// "aten::sort" has (dim, descending), "aten::sort.stable" (stable, dim, descending).
Status sort(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x) return import.cannot("expected one tensor");
  const size_t first = import.call().op.ends_with(".stable") ? 2 : 1;
  const int64_t dim = import.integer(import.arg(first, "dim"), -1);
  const bool descending = import.flag(import.arg(first + 1, "descending"), false);
  const Extents& sizes = import.value(*x).sizes;
  if (sizes.empty()) return import.cannot("it sorts a number");
  const bool places = import.call().op.starts_with("aten::argsort");
  return first_of(import, *x, dim, descending, sizes[axis_of(dim, sizes.size())], places ? "argsort" : "sort",
                  places);
}

Status topk(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  if (!x) return import.cannot("expected one tensor");
  return first_of(import, *x, import.integer(import.arg(2, "dim"), -1),
                  import.flag(import.arg(3, "largest"), true), import.integer(import.arg(1, "k"), 1), "topk");
}

// The element of rank k - 1, or of the middle: of a row that holds a NaN, that NaN.
OperatorImport of_rank(bool median) {
  return [median](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    if (!x) return import.cannot("expected one tensor");
    const Extents sizes = import.value(*x).sizes;
    const size_t given = median ? 1 : 2;
    const bool whole = import.arg(given, "dim") == nullptr && median;
    if (sizes.empty() || (whole && sizes.size() > 1)) return import.cannot("expected a dimension");
    Sorter sorter(import, *x, axis_of(import.integer(import.arg(given, "dim"), whole ? 0 : -1), sizes.size()),
                  false);
    if (!sorter.small(sorter.row_length()))
      return import.cannot("its rows are too long to compare all pairs");
    const TensorId ranks = sorter.ranks();
    const int64_t middle =
        median ? (sorter.row_length().value() - 1) / 2 : import.integer(import.arg(1, "k"), 1) - 1;
    Value wanted(import.exprs(), import.exprs().integer(middle));
    if (median && trace::is_floating(import.value(*x).dtype)) {
      const Value nans(import.exprs(), import.load(sorter.nans(), sorter.batch_index()));
      const Value first = -nans + static_cast<double>(sorter.row_length());
      wanted = (nans > 0).where(first, wanted);
    }
    const TensorId place = sorter.place_of(ranks, wanted);
    const Value where(import.exprs(), import.load(place, sorter.batch_index()));
    const char* name = median ? "median" : "kth_value";
    const auto results = import.results();
    const Value found = sorter.at_place(where);
    NEREID_TRY_STATUS(import.define_reduction(results.at(0), Reduction::kNone, sorter.batch(), {},
                                              found.cast(compute_type(import.result().dtype)).id(), name));
    if (results.size() < 2) return ok_status();
    return import.define_reduction(results[1], Reduction::kNone, sorter.batch(), {}, where.id(),
                                   std::string(name) + "_index");
  };
}

}  // namespace

void add_sorts(OperatorTable& table) {
  table["aten::sort"] = sort;
  table["aten::argsort"] = sort;
  table["aten::topk"] = topk;
  table["aten::median"] = of_rank(true);
  table["aten::kthvalue"] = of_rank(false);
}

}  // namespace nereid::compiler
