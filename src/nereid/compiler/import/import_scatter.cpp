// Elements that go to places which other elements give: every place looks for what comes to it, so there are
// no atomics and no order but that of the indices: of several the last stays, and sums are taken in order.
#include <algorithm>
#include <limits>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

constexpr double kMaxComparisons = double{1 << 30} * 64;  // places times what may come to each

// Sources along one axis of a tensor, and where each goes.
class Scatter {
 public:
  // `index` has the rank of self, or is a vector of places along the axis.
  Scatter(Importer& import, trace::ValueId self, size_t axis, trace::ValueId index)
      : import_(import), exprs_(import.exprs()), axis_(axis), index_(index) {
    sizes_ = import.value(self).sizes;
    const Extents& of_index = import.value(index).sizes;
    vector_ = of_index.size() != sizes_.size() || (sizes_.size() == 1 && of_index.size() == 1);
    count_ = vector_ ? element_count(of_index) : of_index[axis];
    extents_ = sizes_;
    extents_.push_back(count_);
  }

  bool small() const { return static_cast<double>(element_count(extents_)) <= kMaxComparisons; }
  const Extents& sizes() const { return sizes_; }
  int64_t count() const { return count_; }

  // Whether source number j comes to this place, over sizes and j.
  Value comes() {
    const auto rank = static_cast<int>(sizes_.size());
    const Extents of_index = import_.value(index_).sizes;
    std::vector<Index> at;
    Value inside(exprs_, exprs_.integer(1, DType::kBool));
    if (vector_) {
      at.assign(of_index.size(), Index::dimension(rank));
    } else {
      at = source();
      for (size_t d = 0; d < sizes_.size(); ++d)
        if (d != axis_) inside = inside & Value(exprs_, exprs_.within(at[d], 0, of_index[d], extents_));
    }
    const Value place = Value(exprs_, exprs_.cast(import_.read(index_, at, extents_), DType::kI64));
    const Value to = (place < 0).where(place + static_cast<double>(sizes_[axis_]), place);
    return inside & equal(to, Value(exprs_, exprs_.index(Index::dimension(static_cast<int>(axis_)))));
  }
  // The index of source number j for this place.
  std::vector<Index> source() const {
    auto at = dimensions(sizes_.size());
    at[axis_] = Index::dimension(static_cast<int>(sizes_.size()));
    return at;
  }
  // Source number j of this place, in `type`; a number where it is none of a tensor's.
  Value element(const trace::Arg* arg, DType type) {
    const auto id = import_.tensor(arg);
    if (!id) return {exprs_, exprs_.constant(import_.number(arg, 0), type)};
    const Extents& own = import_.value(*id).sizes;
    std::vector<Index> at = own.empty() ? std::vector<Index>{} : source();
    return {exprs_, exprs_.cast(import_.read(*id, at, extents_), type)};
  }
  // A source whose number is an i64 of the places.
  Value element_at(const trace::Arg* arg, Value number, DType type) {
    const auto id = import_.tensor(arg);
    if (!id) return {exprs_, exprs_.constant(import_.number(arg, 0), type)};
    if (import_.value(*id).sizes.empty()) return {exprs_, exprs_.cast(import_.read(*id, {}, sizes_), type)};
    std::vector<Index> at = source();
    at[axis_] = Index();
    // Where nothing comes there may be no such source.
    const Extents& own = import_.value(*id).sizes;
    std::vector<ExprId> further(at.size(), exprs_.integer(0));
    further[axis_] = number.id();
    for (size_t d = 0; d < at.size(); ++d) {
      if (d == axis_ || own[d] >= sizes_[d]) continue;
      const Value own_place(exprs_, exprs_.index(at[d]));
      further[d] = exprs_.apply(Fn::kMin, {own_place.id(), exprs_.integer(own[d] - 1)});
      at[d] = Index();
    }
    return {exprs_, exprs_.cast(import_.read(*id, at, further, sizes_), type)};
  }

  // The last source that comes to each place, and whether there is one.
  std::pair<Value, Value> last() {
    const Value number(exprs_, exprs_.index(Index::dimension(static_cast<int>(sizes_.size()))));
    const Value none(exprs_, exprs_.integer(-1, DType::kI32));
    const Value which = comes().where(number.cast(DType::kI32), none);
    const TensorId found =
        import_.temporary(Reduction::kMax, sizes_, {count_}, which.id(), DType::kI32, "last");
    const Value last = Value(exprs_, import_.load(found, dimensions(sizes_.size()))).cast(DType::kI64);
    return {negated(last < 0), (last < 0).where(last.constant(0), last)};
  }

 private:
  Importer& import_;
  Exprs& exprs_;
  size_t axis_;
  trace::ValueId index_;
  bool vector_ = false;
  int64_t count_ = 0;
  Extents sizes_, extents_;
};

struct Given {
  trace::ValueId self, index;
  size_t axis;
};
Result<Given> given(Importer& import) {
  const auto self = import.tensor(import.arg(0, "self")), index = import.tensor(import.arg(2, "index"));
  if (!self || !index || import.value(*self).sizes.empty())
    return import.cannot("expected a tensor and indices").error();
  return Given{*self, *index,
               axis_of(import.integer(import.arg(1, "dim"), 0), import.value(*self).sizes.size())};
}

// scatter, index_copy, index_fill: what comes last stays.
OperatorImport replaces(const char* source, const char* name) {
  return [source, name](Importer& import) -> Status {
    if (import.arg(4, "reduce") != nullptr) return import.cannot("it reduces");
    NEREID_TRY(const Given of, given(import));
    Scatter scatter(import, of.self, of.axis, of.index);
    if (!scatter.small()) return import.cannot("too many places look for too many sources");
    const DType type = compute_type(import.result().dtype);
    const auto [there, last] = scatter.last();
    const auto* from = import.arg(3, source) != nullptr ? import.arg(3, source) : import.arg(3, "value");
    const Value value = scatter.element_at(from, last, type);
    const Value self(import.exprs(), import.operand(of.self, scatter.sizes(), type));
    return import.define(import.results().at(0), there.where(value, self).id(), name);
  };
}

Status combine(Importer& import, Reduction kind, double alpha, const char* source, const char* name) {
  NEREID_TRY(const Given of, given(import));
  Scatter scatter(import, of.self, of.axis, of.index);
  if (!scatter.small()) return import.cannot("too many places look for too many sources");
  const DType type = compute_type(import.result().dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  const double none = kind == Reduction::kSum    ? 0
                      : kind == Reduction::kProd ? 1
                      : kind == Reduction::kMax  ? -infinity
                                                 : infinity;
  if (std::isinf(none) && !trace::is_floating(type)) return import.cannot("extrema of integers");
  const Value element = scatter.element(import.arg(3, source), type);
  const Value counted = scatter.comes().where(element, element.constant(none));
  const TensorId found = import.temporary(kind, scatter.sizes(), {scatter.count()}, counted.id(), type, name);
  const Value all(import.exprs(), import.load(found, dimensions(scatter.sizes().size())));
  const Value self(import.exprs(), import.operand(of.self, scatter.sizes(), type));
  Value result = kind == Reduction::kSum    ? self + all * alpha
                 : kind == Reduction::kProd ? self * all
                 : kind == Reduction::kMax  ? maximum(self, all)
                                            : minimum(self, all);
  const bool mean = std::string_view(name) == "scatter_mean";
  const bool with_self =
      import.flag(import.arg(5, "include_self"), true) || name == std::string_view("index_add");
  if (mean || !with_self) {
    if (!trace::is_floating(type)) return import.cannot("a mean of integers, or without self");
    const TensorId counts = import.temporary(Reduction::kSum, scatter.sizes(), {scatter.count()},
                                             scatter.comes().cast(DType::kI32).id(), DType::kI32, "count");
    const Value count(import.exprs(), import.load(counts, dimensions(scatter.sizes().size())));
    const Value summed = count.cast(type) + (with_self ? 1.0 : 0.0);
    if (!with_self) result = all * alpha;
    if (mean) result = result / summed;
    if (!with_self) result = equal(count, 0).where(self, result);
  }
  return import.define(import.results().at(0), result.id(), name);
}

Status scatter_add(Importer& import) { return combine(import, Reduction::kSum, 1, "src", "scatter_add"); }
Status index_add(Importer& import) {
  return combine(import, Reduction::kSum, import.number(import.arg(4, "alpha"), 1), "source", "index_add");
}
Status scatter_reduce(Importer& import) {
  const std::string how = import.text(import.arg(4, "reduce"), "");
  if (how == "mean") return combine(import, Reduction::kSum, 1, "src", "scatter_mean");
  if (how == "sum") return combine(import, Reduction::kSum, 1, "src", "scatter_sum");
  if (how == "prod") return combine(import, Reduction::kProd, 1, "src", "scatter_product");
  if (how == "amax") return combine(import, Reduction::kMax, 1, "src", "scatter_max");
  if (how == "amin") return combine(import, Reduction::kMin, 1, "src", "scatter_min");
  return import.cannot("a reduction of another kind than sum, prod, amax and amin");
}

// self[i, :, j] = values, or += values: every place looks at all indices for itself.
class IndexPut {
 public:
  explicit IndexPut(Importer& import) : import_(import), exprs_(import.exprs()) {}

  Status run() {
    const auto self = import_.tensor(import_.arg(0, "self")),
               values = import_.tensor(import_.arg(2, "values"));
    const auto* list = import_.arg(1, "indices");
    if (!self || !values || list == nullptr || !std::holds_alternative<trace::List>(list->node))
      return import_.cannot("expected a tensor, indices and values");
    sizes_ = import_.value(*self).sizes, values_ = *values;
    type_ = compute_type(import_.result().dtype);
    const bool adds = import_.flag(import_.arg(3, "accumulate"), false);
    by_.resize(sizes_.size());
    const auto& items = std::get<trace::List>(list->node).items;
    for (size_t d = 0; d < items.size(); ++d) {
      const auto id = import_.tensor(&items[d]);
      if (id && import_.value(*id).dtype == DType::kBool) return by_mask(*self, *id, d, items.size(), adds);
      by_.at(d) = id;
    }
    lay_out();
    if (static_cast<double>(element_count(extents_)) > kMaxComparisons)
      return import_.cannot("too many places look for too many indices");
    const Value old(exprs_, import_.operand(*self, sizes_, type_));
    const auto define = [&](Value result) {
      return import_.define(import_.results().at(0), result.id(), "index_put");
    };
    const Value comes = this->comes();
    if (adds) {
      const Value element = value(dimensions(shape_.size(), sizes_.size()), {}, extents_);
      const TensorId sum =
          import_.temporary(Reduction::kSum, sizes_, shape_, comes.where(element, element.constant(0)).id(),
                            type_, "index_put_sum");
      return define(old + Value(exprs_, import_.load(sum, dimensions(sizes_.size()))));
    }
    // Of several, the last stays.
    Index number;
    const Extents strides = row_major(shape_);
    for (size_t i = 0; i < shape_.size(); ++i)
      number = number + Index::dimension(static_cast<int>(sizes_.size() + i)) * strides[i];
    const Value own = Value(exprs_, exprs_.index(number)).cast(DType::kI32);
    const TensorId found = import_.temporary(Reduction::kMax, sizes_, shape_,
                                             comes.where(own, own.constant(-1)).id(), DType::kI32, "last");
    const Value last = Value(exprs_, import_.load(found, dimensions(sizes_.size()))).cast(DType::kI64);
    const std::vector<ExprId> further = unraveled(maximum(last, 0), shape_);
    return define((last < 0).where(old, value(std::vector<Index>(shape_.size()), further, sizes_)));
  }

 private:
  // A mask over dimensions from `first` on, and one value for all that it takes.
  Status by_mask(trace::ValueId self, trace::ValueId mask, size_t first, size_t items, bool adds) {
    const Extents& of = import_.value(mask).sizes;
    if (first + 1 != items || element_count(import_.value(values_).sizes) != 1)
      return import_.cannot("how many values it takes depends on data");
    const Value chosen(exprs_, import_.read(mask, dimensions(of.size(), first), sizes_));
    const std::vector<Index> at(import_.value(values_).sizes.size());
    const Value old(exprs_, import_.operand(self, sizes_, type_));
    const Value put = Value(exprs_, import_.read(values_, at, sizes_)).cast(type_);
    return import_.define(import_.results().at(0), chosen.where(adds ? old + put : put, old).id(),
                          "masked_fill");
  }

  // The shape of all indices together, and where its dimensions stand among those that values have.
  void lay_out() {
    size_t first = sizes_.size(), last = 0, count = 0;
    for (size_t d = 0; d < by_.size(); ++d) {
      if (!by_[d]) continue;
      const Extents own = import_.value(*by_[d]).sizes;
      if (own.size() > shape_.size()) shape_.insert(shape_.begin(), own.size() - shape_.size(), Size(1));
      for (size_t i = 0; i < own.size(); ++i) {
        Size& size = shape_[shape_.size() - own.size() + i];
        size = max(size, own[i]);
      }
      first = std::min(first, d), last = d, ++count;
    }
    front_ = last - first + 1 == count ? first : 0;
    extents_ = sizes_;
    extents_.insert(extents_.end(), shape_.begin(), shape_.end());
  }

  // Whether index number (i, ...) is this place, over sizes and the shape of the indices.
  Value comes() {
    Value inside(exprs_, exprs_.integer(1, DType::kBool));
    for (size_t d = 0; d < by_.size(); ++d) {
      if (!by_[d]) continue;
      const Extents own = import_.value(*by_[d]).sizes;
      std::vector<Index> at;
      for (size_t i = 0; i < own.size(); ++i)
        at.push_back(
            own[i] == 1 ? Index()
                        : Index::dimension(static_cast<int>(sizes_.size() + shape_.size() - own.size() + i)));
      const Value given(exprs_, exprs_.cast(import_.read(*by_[d], at, extents_), DType::kI64));
      const Value place = (given < 0).where(given + static_cast<double>(sizes_[d]), given);
      inside = inside & equal(place, Value(exprs_, exprs_.index(Index::dimension(static_cast<int>(d)))));
    }
    return inside;
  }

  // The value at `numbers` (and further) of the indices' shape, for this place.
  Value value(const std::vector<Index>& numbers, const std::vector<ExprId>& further, const Extents& extents) {
    std::vector<Index> at;
    std::vector<ExprId> moves;
    const auto add_numbers = [&] {
      for (size_t i = 0; i < shape_.size(); ++i) {
        at.push_back(numbers[i]);
        moves.push_back(further.empty() ? exprs_.integer(0) : further[i]);
      }
    };
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (d == front_) add_numbers();
      if (by_[d]) continue;
      at.push_back(Index::dimension(static_cast<int>(d)));
      moves.push_back(exprs_.integer(0));
    }
    if (front_ >= sizes_.size()) add_numbers();
    const Extents own = import_.value(values_).sizes;
    at.erase(at.begin(), at.end() - static_cast<ptrdiff_t>(own.size()));
    moves.erase(moves.begin(), moves.end() - static_cast<ptrdiff_t>(own.size()));
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d] == 1) at[d] = Index(), moves[d] = exprs_.integer(0);
    return Value(exprs_, further.empty() ? import_.read(values_, at, extents)
                                         : import_.read(values_, at, moves, extents))
        .cast(type_);
  }

  Importer& import_;
  Exprs& exprs_;
  Extents sizes_, shape_, extents_;
  std::vector<std::optional<trace::ValueId>> by_;
  trace::ValueId values_ = -1;
  DType type_ = DType::kF32;
  size_t front_ = 0;
};

Status index_put(Importer& import) { return IndexPut(import).run(); }

// Places of self as one row. Of several sources the last stays, or all are added.
Status put(Importer& import) {
  const auto self = import.tensor(import.arg(0, "self")), index = import.tensor(import.arg(1, "index")),
             source = import.tensor(import.arg(2, "source"));
  if (!self || !index || !source) return import.cannot("expected three tensors");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.value(*self).sizes, of = import.value(*index).sizes;
  if (import.value(*source).sizes != of) return import.cannot("its index and source have different shapes");
  Extents extents = sizes;
  extents.insert(extents.end(), of.begin(), of.end());
  if (static_cast<double>(element_count(extents)) > kMaxComparisons)
    return import.cannot("too many places look for too many sources");
  const auto number_in = [](const Extents& shape, size_t first) {
    Index number;
    const Extents strides = row_major(shape);
    for (size_t d = 0; d < shape.size(); ++d)
      number = number + Index::dimension(static_cast<int>(first + d)) * strides[d];
    return number;
  };
  const std::vector<Index> at = dimensions(of.size(), sizes.size());
  const DType type = compute_type(import.result().dtype);
  const Value given(exprs, exprs.cast(import.read(*index, at, extents), DType::kI64));
  const Value place = (given < 0).where(given + static_cast<double>(element_count(sizes)), given);
  const Value comes = equal(place, Value(exprs, exprs.index(number_in(sizes, 0))));
  const Value old(exprs, import.operand(*self, sizes, type));
  if (import.flag(import.arg(3, "accumulate"), false)) {
    const Value element(exprs, exprs.cast(import.read(*source, at, extents), type));
    const TensorId sum = import.temporary(Reduction::kSum, sizes, of,
                                          comes.where(element, element.constant(0)).id(), type, "put_sum");
    const Value all(exprs, import.load(sum, dimensions(sizes.size())));
    return import.define(import.results().at(0), (old + all).id(), "put");
  }
  const Value number = Value(exprs, exprs.index(number_in(of, sizes.size()))).cast(DType::kI32);
  const TensorId found = import.temporary(Reduction::kMax, sizes, of,
                                          comes.where(number, number.constant(-1)).id(), DType::kI32, "last");
  const Value last = Value(exprs, import.load(found, dimensions(sizes.size()))).cast(DType::kI64);
  const ExprId value =
      import.read(*source, std::vector<Index>(of.size()), unraveled(maximum(last, 0), of), sizes);
  return import.define(import.results().at(0),
                       (last < 0).where(old, Value(exprs, exprs.cast(value, type))).id(), "put");
}

// Sources whose places in the last `area` dimensions of the result are numbers: each place looks for its own.
// Of several, the last stays.
OperatorImport max_unpool(size_t area) {
  return [area](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self")), indices = import.tensor(import.arg(1, "indices"));
    if (!x || !indices) return import.cannot("expected a tensor and indices");
    Exprs& exprs = import.exprs();
    const Extents sizes = import.result().sizes, in = import.value(*x).sizes;
    const size_t rank = sizes.size(), first = rank - area;
    const Extents plane(in.begin() + static_cast<ptrdiff_t>(first), in.end());
    Extents extents = sizes;
    extents.insert(extents.end(), plane.begin(), plane.end());
    if (static_cast<double>(element_count(extents)) > kMaxComparisons)
      return import.cannot("too many places look for too many sources");
    Index place, number;
    const Extents strides = row_major(sizes), own = row_major(plane);
    auto at = dimensions(rank);
    for (size_t i = 0; i < area; ++i) {
      place = place + at[first + i] * strides[first + i];
      at[first + i] = Index::dimension(static_cast<int>(rank + i));
      number = number + at[first + i] * own[i];
    }
    const Value to = Value(exprs, import.read(*indices, at, extents)).cast(DType::kI64);
    const Value mine = Value(exprs, exprs.index(number)).cast(DType::kI32);
    const Value which = equal(to, Value(exprs, exprs.index(place))).where(mine, mine.constant(-1));
    const TensorId found = import.temporary(Reduction::kMax, sizes, plane, which.id(), DType::kI32, "last");
    const Value last = Value(exprs, import.load(found, dimensions(rank))).cast(DType::kI64);
    std::vector<ExprId> further(first, exprs.integer(0));
    const auto digits = unraveled(maximum(last, 0), plane);
    further.insert(further.end(), digits.begin(), digits.end());
    auto source = dimensions(first);
    source.resize(rank);
    const Value element(exprs, import.read(*x, source, further, sizes));
    return import.define(import.results()[0], (last < 0).where(element.constant(0), element).id(),
                         "max_unpool");
  };
}

// weight [rows, width], indices [n], offsets [bags]: the sum, mean or maximum of each bag's rows.
Status embedding_bag(Importer& import) {
  const auto weight = import.tensor(import.arg(0, "weight")),
             indices = import.tensor(import.arg(1, "indices")),
             offsets = import.tensor(import.arg(2, "offsets")),
             scales = import.tensor(import.arg(6, "per_sample_weights"));
  if (!weight || !indices || !offsets) return import.cannot("expected a table, indices and offsets");
  const int64_t mode = import.integer(import.arg(4, "mode"), 0);
  const bool last_is_end = import.flag(import.arg(7, "include_last_offset"), false);
  if (import.integer(import.arg(8, "padding_idx"), -1) >= 0) return import.cannot("it leaves out an index");
  Exprs& exprs = import.exprs();
  const Extents sizes = import.result().sizes;  // [bags, width]
  const int64_t count = element_count(import.value(*indices).sizes), bags = sizes[0];
  const auto at = [](int d) { return Index::dimension(d); };
  const DType type = compute_type(import.result().dtype);
  // Bags of one length are one after the other; else every bag looks at all indices.
  const auto regular = import.regular_steps(*offsets);
  const bool known = regular && *regular > 0 && *regular * bags == count && !last_is_end;
  const int64_t length = known ? *regular : count;
  const Extents extents{sizes[0], sizes[1], length};
  const Index number = known ? at(0) * length + at(2) : at(2);
  Value inside(exprs, exprs.integer(1, DType::kBool));
  Value size(exprs, exprs.constant(static_cast<double>(length), type));
  if (!known) {
    const auto offset = [&](Index bag, const Extents& over) {
      return Value(exprs, exprs.cast(import.read(*offsets, {std::move(bag)}, over), DType::kI64));
    };
    const int64_t starts = element_count(import.value(*offsets).sizes);
    const auto end_in = [&](const Extents& over) {
      const Value all(exprs, exprs.integer(count));
      if (starts > bags) return offset(at(0) + Index(1), over);
      const Value last(exprs, exprs.within(at(0), bags - 1, bags, over));
      std::vector<ExprId> further{
          exprs.apply(Fn::kMin, {exprs.index(at(0) + Index(1)), exprs.integer(bags - 1)})};
      const Value next(exprs, exprs.cast(import.read(*offsets, {Index()}, further, over), DType::kI64));
      return last.where(all, next);
    };
    const Value own(exprs, exprs.index(number));
    inside = negated(own < offset(at(0), extents)) & (own < end_in(extents));
    size = (end_in(sizes) - offset(at(0), sizes)).cast(type);
  }
  const Value row(exprs, exprs.cast(import.read(*indices, {number}, extents), DType::kI64));
  const std::vector<ExprId> further{row.id(), exprs.integer(0)};
  Value element(exprs, exprs.cast(import.read(*weight, {Index(), at(1)}, further, extents), type));
  if (scales) element = element * Value(exprs, exprs.cast(import.read(*scales, {number}, extents), type));
  const double infinity = std::numeric_limits<double>::infinity();
  const Reduction kind = mode == 2 ? Reduction::kMax : Reduction::kSum;
  const Value counted = inside.where(element, element.constant(mode == 2 ? -infinity : 0));
  const TensorId total = import.temporary(kind, sizes, {length}, counted.id(), type, "embedding_bag");
  const Value all(exprs, import.load(total, dimensions(2)));
  Value result = all;
  if (mode == 1) result = (size > 0).where(all / size, all);
  if (mode == 2) result = (size > 0).where(all, all.constant(0));
  return import.define(import.results().at(0), result.id(), "embedding_bag");
}

}  // namespace

void add_scatters(OperatorTable& table) {
  table["aten::scatter"] = replaces("src", "scatter");
  table["aten::index_copy"] = replaces("source", "index_copy");
  table["aten::index_fill"] = replaces("value", "index_fill");
  table["aten::scatter_add"] = scatter_add;
  table["aten::index_add"] = index_add;
  table["aten::scatter_reduce"] = scatter_reduce;
  table["aten::max_unpool2d"] = max_unpool(2);
  table["aten::max_unpool3d"] = max_unpool(3);
  table["aten::index_put"] = index_put;
  table["aten::put"] = put;
  table["aten::_index_put_impl"] = index_put;
  table["aten::_embedding_bag"] = embedding_bag;
  table["aten::_embedding_bag_forward_only"] = embedding_bag;
}

}  // namespace nereid::compiler
