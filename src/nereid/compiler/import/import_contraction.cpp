// Matrix products and convolutions as sums of products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kFewResults = 8;  // of one channel

// The element of a factor at an index, in float32 (or float64).
ExprId element(Importer& import, trace::ValueId id, const std::vector<Index>& at, const Extents& extents) {
  const ExprId read = import.read(id, at, extents);
  return import.exprs().cast(read, compute_type(import.value(id).dtype));
}

// sum over k of a[..., m, k] * b[..., k, n]; `from` counts the arguments before a.
Status product(Importer& import, trace::ValueId a, trace::ValueId b, const std::vector<Index>& at_a,
               const std::vector<Index>& at_b, const Extents& sizes, const Size& k, const ExprId bias,
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

// x [m, k], v [k]; or two vectors.
Status vector_product(Importer& import) {
  const auto a = import.tensor(import.arg(0, "self")), b = import.tensor(import.arg(1, "vec"));
  if (!a || !b) return import.cannot("expected a matrix and a vector");
  const Extents sizes = import.result().sizes;
  const Size k = import.value(*b).sizes.at(0);
  auto at = dimensions(sizes.size());
  at.push_back(d(sizes.size()));
  return product(import, *a, *b, at, {d(sizes.size())}, sizes, k, -1, 1, "matmul");
}

// beta * self + alpha * product: addmv, addr and addbmm, which sums over the batch, too.
OperatorImport added_product(std::string name) {
  return [name = std::move(name)](Importer& import) -> Status {
    const auto a = import.tensor(import.arg(1, "mat1")), b = import.tensor(import.arg(2, "mat2"));
    if (!a || !b) return import.cannot("expected two factors");
    const Extents sizes = import.result().sizes, of_a = import.value(*a).sizes;
    const DType type = compute_type(import.result().dtype);
    const double beta = import.number(import.arg(3, "beta"), 1),
                 alpha = import.number(import.arg(4, "alpha"), 1);
    Value self(import.exprs(), import.operand(import.arg(0, "self"), sizes, type));
    if (beta == 0) self = self.constant(0);
    self = self * beta;
    if (name == "addr") {
      const Value x(import.exprs(), element(import, *a, {d(0)}, sizes)),
          y(import.exprs(), element(import, *b, {d(1)}, sizes));
      return import.define(import.results()[0], (self + x * y * alpha).id(), name);
    }
    if (name == "addmv")
      return product(import, *a, *b, {d(0), d(1)}, {d(1)}, sizes, of_a[1], self.id(), alpha, name);
    import.contraction_under("matmul.allow_tf32");
    const Extents reduced{of_a[0], of_a[2]}, extents{sizes[0], sizes[1], of_a[0], of_a[2]};
    const Value x(import.exprs(), element(import, *a, {d(2), d(0), d(3)}, extents)),
        y(import.exprs(), element(import, *b, {d(2), d(3), d(1)}, extents));
    const TensorId sum =
        import.temporary(Reduction::kSum, sizes, reduced, (x * y).id(), import.result().dtype, name);
    const Value total(import.exprs(), import.load(sum, dimensions(2)));
    return import.define(import.results()[0], (self + total * alpha).id(), name);
  };
}

// The sum over some dimensions of the product of three tensors, each of which has dimensions of extent 1
// where `expand` says.
Status trilinear(Importer& import) {
  const auto summed = import.integers(import.arg(6, "sumdim"));
  std::vector<Extents> of(3);
  Extents all;
  for (size_t i = 0; i < 3; ++i) {
    const auto id = import.tensor(import.arg(i, ""));
    if (!id) return import.cannot("expected three tensors");
    of[i] = import.value(*id).sizes;
    for (const int64_t at : import.integers(import.arg(3 + i, ""))) of[i].insert(of[i].begin() + at, 1);
    all.resize(std::max(all.size(), of[i].size()), 1);
    for (size_t dim = 0; dim < of[i].size(); ++dim) all[dim] = max(all[dim], of[i][dim]);
  }
  Extents kept, reduced;
  std::vector<Index> where(all.size());
  const auto gone = [&](size_t dim) {
    return std::ranges::find(summed, static_cast<int64_t>(dim)) != summed.end();
  };
  for (size_t dim = 0; dim < all.size(); ++dim)
    if (!gone(dim)) {
      where[dim] = d(kept.size());
      kept.push_back(all[dim]);
    }
  for (size_t dim = 0; dim < all.size(); ++dim)
    if (gone(dim)) {
      where[dim] = d(kept.size() + reduced.size());
      reduced.push_back(all[dim]);
    }
  Extents extents = kept;
  extents.insert(extents.end(), reduced.begin(), reduced.end());
  ExprId body = -1;
  for (size_t i = 0; i < 3; ++i) {
    const auto expanded = import.integers(import.arg(3 + i, ""));
    std::vector<Index> at;
    for (size_t dim = 0; dim < all.size(); ++dim)
      if (std::ranges::find(expanded, static_cast<int64_t>(dim)) == expanded.end()) at.push_back(where[dim]);
    const ExprId factor = element(import, *import.tensor(import.arg(i, "")), at, extents);
    body = body < 0 ? factor : import.exprs().apply(Fn::kMul, {body, factor});
  }
  if (element_count(kept) != element_count(import.result().sizes))
    return import.cannot("it keeps the summed dimension");
  return import.define_reduction(import.results()[0], Reduction::kSum, kept, reduced, body, "bilinear");
}

// x [n, c, area...]; weight [o, c / groups, window...], or of a transposed convolution [c, o / groups,
// window...].
//
// Dimensions of the sum: n, group, channel of the group, area; of a transposed one each place p of the result
// is q * stride + r, for only every stride-th tap of the window meets an element of x there. Then what is
// summed: channels of the group, window.
class Convolution {
 public:
  explicit Convolution(Importer& import) : import_(import), exprs_(import.exprs()) {}

  Status run() {
    const auto x = import_.tensor(import_.arg(0, "input")), weight = import_.tensor(import_.arg(1, "weight"));
    if (!x || !weight) return import_.cannot("expected an input and weights");
    import_.contraction_under("cudnn.allow_tf32");
    transposed_ = import_.flag(import_.arg(6, "transposed"), false);
    groups_ = import_.integer(import_.arg(8, "groups"), 1);
    out_sizes_ = sizes_ = import_.result().sizes;
    in_ = import_.value(*x).sizes;
    window_ = import_.value(*weight).sizes;
    area_ = sizes_.size() - 2;
    out_each_ = sizes_[1] / groups_;
    in_each_ = in_[1] / groups_;
    for (size_t i = 0; i < area_; ++i) {
      stride_.push_back(nth("stride", 3, i)), padding_.push_back(nth("padding", 4, i));
      dilation_.push_back(nth("dilation", 5, i));
      step_.push_back(transposed_ ? std::gcd(stride_[i], dilation_[i]) : 1);
      if (step_[i] > 1) leave_out_zeros(i);
    }
    lay_out();
    return sum(*x, *weight);
  }

 private:
  int64_t nth(std::string_view name, size_t position, size_t i) const {
    const auto list = import_.integers(import_.arg(position, name));
    return list.size() == 1 ? list[0] : list.at(i);
  }
  int64_t stride(size_t i) const { return stride_[i]; }
  int64_t padding(size_t i) const { return padding_[i]; }
  int64_t dilation(size_t i) const { return dilation_[i]; }
  // Of a transposed convolution whose stride and dilation have a common factor, only every such place is
  // reached by a tap, from first_[i] on: the sum goes over those places, with stride and dilation divided
  // by the factor.
  void leave_out_zeros(size_t i) {
    const int64_t step = step_[i];
    first_.resize(area_, 0);
    first_[i] = (step - padding_[i] % step) % step;
    stride_[i] /= step, dilation_[i] /= step;
    padding_[i] = (padding_[i] + first_[i]) / step;
    sizes_[2 + i] = max((sizes_[2 + i] - first_[i] + step - 1) / step, 1);
  }
  // A place's remainder modulo the stride, its class, says which taps meet an element of x there: every
  // stride-th from one on.
  bool by_classes(size_t i) const { return transposed_ && stride(i) > 1; }
  // The first such tap, k with k * dilation = shifted modulo the stride, for a place's distance `shifted`
  // from where x begins; and where that tap reads x, before what the place's quotient by the stride adds.
  Index first_tap(size_t i, const Index& shifted, const Extents& extents) const {
    int64_t inverse = 1;
    while (inverse * dilation(i) % stride(i) != 1) ++inverse;
    return remainder(shifted * inverse, stride(i), extents);
  }
  Index first_read(size_t i, const Index& shifted, const Extents& extents) const {
    if (dilation(i) == 1) return quotient(shifted, stride(i), extents);
    const Index k = first_tap(i, shifted, extents);
    return quotient(shifted - k * dilation(i), stride(i), extents);
  }

  // A channel has a few results: in blocks of a product most of their columns would be padding.
  bool has_few_results() const {
    return !transposed_ && in_each_ == 1 && out_each_ > 1 && out_each_ <= kFewResults;
  }

  // Along a dimension of the area, the taps that meet an element of x at some place: of a window that is
  // wider than the tensor the outer ones see padding alone.
  struct Taps {
    int64_t first = 0, count = 1;
  };
  Taps taps(size_t i) const {
    const int64_t places = sizes_[2 + i], in = in_[2 + i];
    int64_t all = window_[2 + i], low = -padding(i), high = (places - 1) * stride(i) + low,
            step = dilation(i),
            end = in;  // where x is read at the first and at the last place by tap 0, and a tap further
    if (by_classes(i)) {
      all = (all + stride(i) - 1) / stride(i), step = -dilation(i);
      low = std::numeric_limits<int64_t>::max(), high = -low;
      for (int64_t c = 0; c < stride(i); ++c) {
        const int64_t read = first_read(i, Index(c + padding(i)), {}).constant();
        low = std::min(low, read), high = std::max(high, read);
      }
      high += (places + stride(i) - 1) / stride(i) - 1;
    } else if (transposed_) {
      low = padding(i), high = places - 1 + low, step = -dilation(i), end = in * stride(i);
    }
    const auto meets = [&](int64_t tap) { return low + step * tap < end && high + step * tap >= 0; };
    Taps found{.first = 0, .count = all};
    while (found.count > 1 && !meets(found.first)) ++found.first, --found.count;
    while (found.count > 1 && !meets(found.first + found.count - 1)) --found.count;
    return found;
  }

  void lay_out() {
    // Of a depthwise convolution a group is a channel, and the result's element is where it is in the sum.
    const bool depthwise = groups_ > 1 && (out_each_ == 1 || has_few_results());
    rows_ = {sizes_[0], depthwise ? sizes_[1] : Size(groups_)};
    if (!depthwise) rows_.push_back(out_each_);
    out_ = depthwise ? Index() : d(2);
    at_ = {d(0), depthwise ? d(1) : d(1) * out_each_ + out_};
    const size_t first_place = rows_.size();
    reduced_ = {in_each_};
    for (size_t i = 0; i < area_; ++i) {
      const int64_t step = by_classes(i) ? stride(i) : 1;
      rows_.push_back((sizes_[2 + i] + step - 1) / step);
      reduced_.push_back(taps(i).count);
    }
    for (size_t i = 0; i < area_; ++i) {
      place_.push_back(d(first_place + i));
      class_.emplace_back();
      if (!by_classes(i)) continue;
      class_[i] = d(rows_.size());
      rows_.push_back(stride(i));
    }
    for (size_t i = 0; i < area_; ++i)
      at_.push_back(by_classes(i) ? place_[i] * stride(i) + class_[i] : place_[i]);
    as_it_is_ = at_ == dimensions(at_.size());
    extents_ = rows_;
    extents_.insert(extents_.end(), reduced_.begin(), reduced_.end());
  }

  void both(ExprId& condition, ExprId other) { condition = exprs_.apply(Fn::kAnd, {condition, other}); }

  // Where x and the weight are read along one dimension of the area, and under which conditions they are
  // there.
  void along(size_t i, std::vector<Index>& at_x, std::vector<Index>& at_w, ExprId& in_x, ExprId& in_w) {
    const Index tap = d(rows_.size() + 1 + i) + Index(taps(i).first);
    Index from, k = tap;
    if (!transposed_) {
      from = place_[i] * stride(i) + tap * dilation(i) - Index(padding(i));
    } else if (by_classes(i)) {
      const Index shifted = class_[i] + Index(padding(i));
      k = first_tap(i, shifted, extents_) + tap * stride(i);
      from = place_[i] + first_read(i, shifted, extents_) - tap * dilation(i);
      both(in_w, exprs_.within(k, 0, window_[2 + i], extents_));
    } else {
      const Index reached = place_[i] + Index(padding(i)) - tap * dilation(i);
      from = quotient(reached, stride(i), extents_);
      both(in_x, exprs_.within(remainder(reached, stride(i), extents_), 0, 1, extents_));
    }
    both(in_x, exprs_.within(from, 0, in_[2 + i], extents_));
    at_x.push_back(from);
    at_w.push_back(k);
  }

  Value kept(ExprId condition, ExprId value) {
    const Value element(exprs_, value);
    return Value(exprs_, condition).where(element, element.constant(0));
  }

  // The sums where a tap reaches, else zero.
  Value among_zeros(TensorId sums) {
    std::vector<Index> at = dimensions(2);
    ExprId reached = exprs_.integer(1, DType::kBool);
    for (size_t i = 0; i < area_; ++i) {
      const Index from = d(2 + i) - Index(first_[i]);
      at.push_back(quotient(from, step_[i], out_sizes_));
      both(reached, exprs_.within(remainder(from, step_[i], out_sizes_), 0, 1, out_sizes_));
    }
    return kept(reached, import_.load(sums, at));
  }

  Status sum(trace::ValueId x, trace::ValueId weight) {
    const Index channel = d(rows_.size());
    std::vector<Index> at_x{d(0), d(1) * in_each_ + channel}, at_w{at_[1], channel};
    if (groups_ > 1 && has_few_results()) at_x[1] = quotient(d(1), out_each_, extents_);
    if (transposed_) at_w = {d(1) * in_each_ + channel, out_};
    ExprId in_x = exprs_.integer(1, DType::kBool), in_w = in_x;
    for (size_t i = 0; i < area_; ++i) along(i, at_x, at_w, in_x, in_w);
    // Where there is no weight there is no x either: zero times infinity would be something.
    const ExprId in_both = exprs_.apply(Fn::kAnd, {in_x, in_w});
    const ExprId of_x = element(import_, x, at_x, extents_), of_w = element(import_, weight, at_w, extents_);
    // A transposed convolution of PyTorch multiplies only what there is of x: no NaN among the weights gets
    // to a place at which it would meet padding. A tensor core takes two factors and cannot leave a product
    // out; where each result has a channel of its own none is used.
    const bool alone = transposed_ && in_each_ == 1 && out_each_ == 1;
    const Value product = alone ? kept(in_both, (Value(exprs_, of_x) * Value(exprs_, of_w)).id())
                                : kept(in_both, of_x) * kept(in_w, of_w);
    if (in_each_ == 1) import_.over_windows();  // no tensor core helps with one channel
    const std::string name = transposed_ ? "conv_transpose" : "conv";
    const auto bias = import_.tensor(import_.arg(2, "bias"));
    const bool spread = !first_.empty();
    const std::vector<Index> at = as_it_is_ ? std::vector<Index>() : at_;
    if (!bias && !spread)
      return import_.define_reduction_at(import_.results()[0], Reduction::kSum, rows_, reduced_, at,
                                         product.id(), name);
    // Of a window that becomes a part of other expressions, rounded once.
    const DType type = in_each_ == 1 ? compute_type(import_.result().dtype) : import_.result().dtype;
    const TensorId total =
        import_.temporary_at(Reduction::kSum, rows_, reduced_, at, sizes_, product.id(), type, name);
    const Value result =
        spread ? among_zeros(total) : Value(exprs_, import_.load(total, dimensions(sizes_.size())));
    if (!bias) return import_.define(import_.results()[0], result.id(), name);
    const Value shift(exprs_, import_.read(*bias, {d(1)}, out_sizes_));
    return import_.define(import_.results()[0], (result + shift.cast(result.type())).id(), name);
  }

  Importer& import_;
  Exprs& exprs_;
  bool transposed_ = false;
  int64_t groups_ = 1;
  Size out_each_ = 1, in_each_ = 1;
  size_t area_ = 1;
  std::vector<int64_t> stride_, padding_, dilation_;  // of each dimension of the area
  std::vector<int64_t> step_, first_;  // of the places that are summed; first_: empty if all are
  Extents sizes_, in_, window_;        // of the sums, of x, of the weight
  Extents out_sizes_;                  // of the result
  Extents rows_, reduced_, extents_;
  Index out_;  // which of a group's channels
  std::vector<Index> at_, place_, class_;
  bool as_it_is_ = false;  // the result has element d at d
};

Status convolution(Importer& import) { return Convolution(import).run(); }

}  // namespace

void add_contractions(OperatorTable& table) {
  table["aten::mm"] = matrix_product(0, "matmul");
  table["aten::bmm"] = matrix_product(0, "matmul");
  table["aten::matmul"] = matrix_product(0, "matmul");
  table["aten::addmm"] = matrix_product(1, "matmul");
  table["aten::baddbmm"] = matrix_product(1, "matmul");
  table["aten::linear"] = linear;
  table["aten::convolution"] = convolution;
  table["aten::mv"] = vector_product;
  table["aten::dot"] = vector_product;
  for (const char* name : {"addmv", "addr", "addbmm"})
    table[std::string("aten::") + name] = added_product(name);
  table["aten::_trilinear"] = trilinear;
}

}  // namespace nereid::compiler
