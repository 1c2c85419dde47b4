// What reductions over some axes of a value are written with.
#pragma once

#include <algorithm>
#include <cmath>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {

// How a reduction over some axes of a value is laid out: dimensions that stay come first, then those that go.
struct Axes {
  Extents sizes;        // of the value
  Extents kept, gone;   // their sizes
  std::vector<int> of;  // of each of the value's dimensions: its dimension in a node's body

  Axes(const Extents& all, std::vector<int64_t> axes) : sizes(all), of(all.size()) {
    std::vector<bool> goes(all.size(), axes.empty());
    for (auto axis : axes)
      goes.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(all.size()) : axis)) = true;
    for (size_t d = 0; d < all.size(); ++d) {
      if (goes[d]) continue;
      of[d] = static_cast<int>(kept.size());
      kept.push_back(all[d]);
    }
    for (size_t d = 0; d < all.size(); ++d) {
      if (!goes[d]) continue;
      of[d] = static_cast<int>(kept.size() + gone.size());
      gone.push_back(all[d]);
      reduced_dims.push_back(d);
    }
  }
  std::vector<size_t> reduced_dims;

  Extents extents() const {
    Extents both = kept;
    both.insert(both.end(), gone.begin(), gone.end());
    return both;
  }
  // The value's own index, in the body of a reduction over these axes.
  std::vector<Index> in_body() const {
    std::vector<Index> at;
    for (const int d : of) at.push_back(Index::dimension(d));
    return at;
  }
  // The index of what is kept, in a body over the value's own dimensions.
  std::vector<Index> in_whole() const {
    std::vector<Index> at(kept.size());
    for (size_t d = 0; d < of.size(); ++d)
      if (of[d] < static_cast<int>(kept.size()))
        at[static_cast<size_t>(of[d])] = Index::dimension(static_cast<int>(d));
    return at;
  }
  Size elements() const { return element_count(gone); }
  double count() const { return static_cast<double>(elements()); }
};

class Reducer {
 public:
  explicit Reducer(Importer& import) : import_(import), exprs_(import.exprs()) {}

  ExprId apply(Fn fn, ExprId a) { return exprs_.apply(fn, {a}); }
  ExprId apply(Fn fn, ExprId a, ExprId b) { return exprs_.apply(fn, {a, b}); }
  // `a fn b` ? then : otherwise
  ExprId apply_where(Fn fn, ExprId a, ExprId b, double then, ExprId otherwise) {
    return exprs_.apply(Fn::kWhere,
                        {exprs_.apply(fn, {a, b}), constant(then, exprs_[otherwise].type), otherwise});
  }
  ExprId constant(double number, DType type) { return exprs_.constant(number, type); }
  ExprId constant(const Ratio& ratio, DType type) { return exprs_.constant(ratio, type); }

  // The element of x in the body of a reduction over `axes`, in the compute type.
  ExprId element(trace::ValueId x, const Axes& axes) {
    const ExprId read = import_.read(x, axes.in_body(), axes.extents());
    return exprs_.cast(read, compute_type(import_.value(x).dtype));
  }
  ExprId element_of_whole(trace::ValueId x) {
    const auto& sizes = import_.value(x).sizes;
    const ExprId read = import_.read(x, dimensions(sizes.size()), sizes);
    return exprs_.cast(read, compute_type(import_.value(x).dtype));
  }
  ExprId kept(TensorId tensor, const Axes& axes) {
    return import_.load(tensor, dimensions(axes.kept.size()));
  }
  ExprId of_whole(TensorId tensor, const Axes& axes) { return import_.load(tensor, axes.in_whole()); }

  TensorId reduce(Reduction reduction, const Axes& axes, ExprId body, std::string name) {
    return import_.temporary(reduction, axes.kept, axes.gone, body, exprs_[body].type, std::move(name));
  }
  TensorId map(const Axes& axes, ExprId body, std::string name) {
    return import_.temporary(Reduction::kNone, axes.kept, {}, body, exprs_[body].type, std::move(name));
  }
  TensorId mean(const Axes& axes, ExprId element, std::string name = "mean") {
    const TensorId sum = reduce(Reduction::kSum, axes, element, name);
    const DType type = exprs_[element].type;
    return map(axes,
               apply(Fn::kMul, kept(sum, axes), constant(Ratio{.over = 1, .under = axes.elements()}, type)),
               name);
  }
  // Mean and variance, with `correction` fewer in the variance's divisor, in two passes. The first mean is
  // rounded; what the distances from it still sum to is taken off in both (Chan, Golub and LeVeque,
  // "Algorithms for computing the sample variance", 1983). Elements are scaled before they are summed, so
  // that a sum does not overflow where the mean does not.
  struct Moments {
    TensorId rough = -1, rest = -1;  // the mean is their sum; the distance x - rough - rest is more exact
    TensorId mean = -1, variance = -1;
  };
  Moments moments(const Axes& axes, ExprId element, double correction = 0) {
    Moments made;
    const Value x(exprs_, element);
    const Ratio share{.over = 1, .under = axes.elements()};
    made.rough = reduce(Reduction::kSum, axes, (x * share).id(), "mean");
    const Value distance = x - Value(exprs_, kept(made.rough, axes));
    made.rest = reduce(Reduction::kSum, axes, (distance * share).id(), "mean_rest");
    // Where that is a whole number, it is written so.
    const bool whole = correction == std::floor(correction) && axes.count() > correction;
    const Size freedom = axes.elements() - (whole ? static_cast<int64_t>(correction) : 0);
    const double left = std::max(axes.count() - correction, 0.0);
    const Value divided = whole ? x.constant(Ratio{.over = 1, .under = freedom}) : x.constant(1 / left);
    const TensorId squares = reduce(Reduction::kSum, axes, (distance * divided * distance).id(), "variance");
    const Value rough(exprs_, kept(made.rough, axes)), rest(exprs_, kept(made.rest, axes));
    // Of an infinite element the distance is no number.
    made.mean = map(axes, rough.apply(Fn::kIsInf).where(rough, rough + rest).id(), "mean");
    const Value all(exprs_, kept(squares, axes));
    const Value over = whole ? x.constant(Ratio{.over = axes.elements(), .under = freedom})
                             : x.constant(axes.count() / left);
    const Value rest_of = maximum(all - rest * over * rest, 0);
    made.variance = map(axes, all.apply(Fn::kIsInf).where(all, rest_of).id(), "variance");
    return made;
  }

 private:
  Importer& import_;
  Exprs& exprs_;
};

}  // namespace nereid::compiler
