// Elements between those of a tensor: enlarging and shrinking images, and sampling at places that other
// tensors give. A place outside is another place, or nothing, by how a tensor is padded.
#include <array>
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

constexpr double kBicubic = -0.75, kBicubicAntialiased = -0.5;  // PyTorch's coefficients of Keys' kernel

Index dim(size_t d) { return Index::dimension(static_cast<int>(d)); }

// Keys' cubic kernel ("Cubic convolution interpolation for digital image processing", 1981) at a distance of
// at most 1, and at one from 1 to 2.
Value cubic_near(Value x, double a) { return ((x * (a + 2) - (a + 3)) * x) * x + 1.0; }
Value cubic_far(Value x, double a) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; }

// What is read along one dimension, with its weight.
struct Tap {
  Value place;  // an i64 that is inside
  std::optional<Value> weight, inside;
};

// The sum over all combinations of taps along the last dimensions of x, whose result has `sizes`; what is not
// inside is left out.
Value sum_of_taps(Importer& import, trace::ValueId x, const std::vector<std::vector<Tap>>& along,
                  std::vector<Index> at, const Extents& sizes, DType type) {
  Exprs& exprs = import.exprs();
  const size_t area = along.size(), first = at.size() - area;
  size_t count = 1;
  for (const auto& taps : along) count *= taps.size();
  std::optional<Value> sum;
  for (size_t i = 0; i < count; ++i) {
    std::vector<ExprId> further(at.size(), exprs.integer(0));
    std::optional<Value> weight, inside;
    for (size_t d = 0, left = i; d < area; left /= along[d].size(), ++d) {
      const Tap& tap = along[d][left % along[d].size()];
      at[first + d] = Index();
      further[first + d] = tap.place.id();
      if (tap.weight) weight = weight ? *weight * *tap.weight : *tap.weight;
      if (tap.inside) inside = inside ? *inside & *tap.inside : *tap.inside;
    }
    Value term = Value(exprs, import.read(x, at, further, sizes)).cast(type);
    if (weight) term = term * *weight;
    if (inside) term = inside->where(term, term.constant(0));
    sum = sum ? *sum + term : term;
  }
  return *sum;
}

// What one step in the result is in x: by sizes, or by the factor that was asked for.
double step_of(Importer& import, const trace::Arg* given, int64_t in, int64_t out, bool corners) {
  if (corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  const double factor = import.number(given, 0);
  return factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
}

// Of 4 by 4 neighbours.
Status bicubic(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const bool corners = import.flag(import.arg(2, "align_corners"), false);
  const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
  const DType type = compute_type(import.result().dtype);
  std::vector<std::vector<Tap>> along;
  for (size_t d = 2; d < 4; ++d) {
    const double step = step_of(import, import.arg(1 + d, ""), in[d], sizes[d], corners);
    const Value own = Value(import.exprs(), import.exprs().index(dim(d))).cast(type);
    const Value from = corners ? own * step : (own + 0.5) * step - 0.5;
    const Value low = from.apply(Fn::kFloor), part = from - low, whole = low.cast(DType::kI64);
    const Value rest = part.constant(1) - part;
    const std::array<Value, 4> weights{cubic_far(part + 1.0, kBicubic), cubic_near(part, kBicubic),
                                       cubic_near(rest, kBicubic), cubic_far(rest + 1.0, kBicubic)};
    along.emplace_back();
    for (int tap = 0; tap < 4; ++tap)
      along.back().push_back({clamp(whole + (tap - 1.0), 0, static_cast<double>(in[d] - 1)),
                              weights[static_cast<size_t>(tap)], std::nullopt});
  }
  const Value sum = sum_of_taps(import, *x, along, dimensions(4), sizes, type);
  return import.define(import.results()[0], sum.id(), "upsample_bicubic");
}

// Along one dimension, all of x under a filter that is as wide as a step. Weights are divided by their sum.
class Antialiased {
 public:
  Antialiased(Importer& import, bool cubic, DType type)
      : import_(import), exprs_(import.exprs()), cubic_(cubic), type_(type) {}

  // `element` of x at an i64 along dimension d, which has `in` of them; the result has `sizes`.
  TensorId along(size_t d, int64_t in, double step, const Extents& sizes,
                 const std::function<Value(Value place, const Extents& extents)>& element) {
    const double wide = std::max(step, 1.0), support = (cubic_ ? 2 : 1) * wide;
    const auto taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
    Extents extents = sizes;
    extents.push_back(taps);
    const auto of = [&](const Index& own, const Index& tap) {
      const Value center = (Value(exprs_, exprs_.index(own)).cast(type_) + 0.5) * step;
      const auto edge = [&](Value at) {
        return clamp((at + 0.5).apply(Fn::kTrunc), 0, static_cast<double>(in));
      };
      const Value begin = edge(center - support), end = edge(center + support);
      const Value place = begin + Value(exprs_, exprs_.index(tap)).cast(type_);
      const Value weight = filter((place - center + 0.5) / wide);
      return std::pair((place < end).where(weight, weight.constant(0)),
                       minimum(place, static_cast<double>(in - 1)).cast(DType::kI64));
    };
    const Value share = of(dim(0), dim(1)).first;
    const TensorId shares =
        import_.temporary(Reduction::kSum, {sizes[d]}, {taps}, share.id(), type_, "weights");
    const auto [weight, place] = of(dim(d), dim(sizes.size()));
    const Value x = element(place, extents);
    const TensorId sum =
        import_.temporary(Reduction::kSum, sizes, {taps},
                          equal(weight, 0).where(weight.constant(0), weight * x).id(), type_, "filtered");
    const Value result = Value(exprs_, import_.load(sum, dimensions(sizes.size()))) /
                         Value(exprs_, import_.load(shares, {dim(d)}));
    return import_.temporary(Reduction::kNone, sizes, {}, result.id(), type_, "filtered");
  }

 private:
  Value filter(Value distance) const {
    const Value size = distance.apply(Fn::kAbs);
    if (!cubic_) return maximum(size.constant(1) - size, 0);
    const double a = kBicubicAntialiased;
    return (size < 1).where(cubic_near(size, a), (size < 2).where(cubic_far(size, a), size.constant(0)));
  }

  Importer& import_;
  Exprs& exprs_;
  bool cubic_;
  DType type_;
};

OperatorImport antialiased(bool cubic) {
  return [cubic](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const bool corners = import.flag(import.arg(2, "align_corners"), false);
    const Extents out = import.result().sizes, in = import.value(x.value()).sizes;
    const DType type = compute_type(import.result().dtype);
    if (!trace::is_floating(type)) return import.cannot("it resamples integers");
    Exprs& exprs = import.exprs();
    Antialiased filter(import, cubic, type);
    Extents sizes = in;
    TensorId done = -1;
    for (const size_t d : {size_t{3}, size_t{2}}) {
      sizes[d] = out[d];
      const double step = step_of(import, import.arg(1 + d, ""), in[d], out[d], corners);
      const auto element = [&](Value place, const Extents& extents) {
        auto at = dimensions(4);
        std::vector<ExprId> further(4, exprs.integer(0));
        at[d] = Index(), further[d] = place.id();
        return done < 0 ? Value(exprs, import.read(*x, at, further, extents)).cast(type)
                        : Value(exprs, exprs.load(done, at, type, further));
      };
      done = filter.along(d, in[d], step, sizes, element);
    }
    return import.define(import.results()[0], import.load(done, dimensions(4)), "resample");
  };
}

// grid_sample: x [n, c, (d,) h, w], grid [n, (d,) h, w, 2 or 3], whose last numbers are x, y (and z) from -1
// to 1.
class GridSampler {
 public:
  GridSampler(Importer& import, size_t area) : import_(import), exprs_(import.exprs()), area_(area) {}

  Status run() {
    enum Mode { kLinear, kNearest, kCubic };
    const auto x = import_.tensor(import_.arg(0, "input")), grid = import_.tensor(import_.arg(1, "grid"));
    if (!x || !grid) return import_.cannot("expected a tensor and a grid");
    const int64_t mode = import_.integer(import_.arg(2, "interpolation_mode"), 0);
    padding_ = static_cast<Padding>(import_.integer(import_.arg(3, "padding_mode"), 0));
    corners_ = import_.flag(import_.arg(4, "align_corners"), false);
    const Extents sizes = import_.result().sizes, in = import_.value(*x).sizes;
    const DType type = compute_type(import_.result().dtype);
    std::vector<std::vector<Tap>> along;
    for (size_t i = 0; i < area_; ++i) {
      size_ = in[2 + i];
      std::vector<Index> at{dim(0)};
      for (size_t d = 0; d < area_; ++d) at.push_back(dim(2 + d));
      at.emplace_back(static_cast<int64_t>(area_ - 1 - i));
      const Value unit = Value(exprs_, import_.read(*grid, at, sizes)).cast(type);
      const auto all = static_cast<double>(size_);
      const Value from = corners_ ? (unit + 1.0) * ((all - 1) / 2) : ((unit + 1.0) * all - 1.0) * 0.5;
      along.push_back(mode == kCubic     ? cubic(from)
                      : mode == kNearest ? std::vector{tap(padded(from).apply(Fn::kRound), std::nullopt)}
                                         : linear(padded(from)));
    }
    auto at = dimensions(2);
    at.resize(2 + area_);
    const Value sum = sum_of_taps(import_, *x, along, at, sizes, type);
    return import_.define(import_.results()[0], sum.id(), "grid_sample");
  }

 private:
  enum class Padding : int64_t { kZeros, kBorder, kReflection };

  // A whole number as a place: of one that is outside, or NaN, another and that it is none.
  Tap tap(Value at, std::optional<Value> weight) const {
    const auto last = static_cast<double>(size_ - 1);
    const Value inside = negated(at < 0) & negated(at > last) & negated(is_nan(at));
    const Value place = inside.where(at, at.constant(0)).cast(DType::kI64);
    return {place, weight, inside};
  }
  std::vector<Tap> linear(Value from) const {
    const Value low = from.apply(Fn::kFloor), part = from - low;
    return {tap(low, part.constant(1) - part), tap(low + 1.0, part)};
  }
  // Each of the four is padded by itself.
  std::vector<Tap> cubic(Value from) const {
    const Value low = from.apply(Fn::kFloor), part = from - low, rest = part.constant(1) - part;
    return {tap(padded(low - 1.0), cubic_far(part + 1.0, kBicubic)),
            tap(padded(low), cubic_near(part, kBicubic)), tap(padded(low + 1.0), cubic_near(rest, kBicubic)),
            tap(padded(low + 2.0), cubic_far(rest + 1.0, kBicubic))};
  }

  Value padded(Value from) const {
    const auto last = static_cast<double>(size_ - 1);
    if (padding_ == Padding::kZeros) return from;
    if (padding_ == Padding::kBorder) return clamp(from, 0, last);
    // Mirrored at the centers of the outer elements, or at their outer edges.
    const double low = corners_ ? 0 : -0.5, span = corners_ ? last : last + 1;
    if (span == 0) return from * 0.0;
    const Value far = (from - low).apply(Fn::kAbs), extra = far.apply(Fn::kFmod, far.constant(span));
    const Value turns = (far / span).apply(Fn::kFloor);
    const Value even = equal(turns.apply(Fn::kFmod, turns.constant(2)), 0);
    return clamp(even.where(extra + low, extra.constant(span + low) - extra), 0, last);
  }

  Importer& import_;
  Exprs& exprs_;
  size_t area_;
  Padding padding_ = Padding::kZeros;
  bool corners_ = false;
  int64_t size_ = 1;  // of x along the dimension that is looked at
};

OperatorImport grid_sample(size_t area) {
  return [area](Importer& import) -> Status { return GridSampler(import, area).run(); };
}

// theta [n, area, area + 1]: the grid [n, (d,) h, w, area] of its products with (x, y, (z,) 1).
Status affine_grid(Importer& import) {
  const auto theta = import.tensor(import.arg(0, "theta"));
  const bool corners = import.flag(import.arg(2, "align_corners"), false);
  const Extents sizes = import.result().sizes;
  const size_t area = sizes.size() - 2;
  const DType type = compute_type(import.result().dtype);
  const auto factor = [&](size_t column) {
    const std::vector<Index> at{dim(0), dim(area + 1), Index(static_cast<int64_t>(column))};
    return Value(import.exprs(), import.read(theta.value(), at, sizes)).cast(type);
  };
  Value sum = factor(area);
  for (size_t column = 0; column < area; ++column) {
    const size_t d = area - column;
    const auto count = static_cast<double>(sizes[d]);
    const Value own = Value(import.exprs(), import.exprs().index(dim(d))).cast(type);
    const Value unit = !corners    ? (own * 2.0 + (1 - count)) / count
                       : count > 1 ? own * (2 / (count - 1)) - 1.0
                                   : own * 0.0;
    sum = sum + factor(column) * unit;
  }
  return import.define(import.results()[0], sum.id(), "affine_grid");
}

}  // namespace

void add_resampling(OperatorTable& table) {
  table["aten::upsample_bicubic2d"] = bicubic;
  table["aten::_upsample_bilinear2d_aa"] = antialiased(false);
  table["aten::_upsample_bicubic2d_aa"] = antialiased(true);
  table["aten::grid_sampler_2d"] = grid_sample(2);
  table["aten::grid_sampler_3d"] = grid_sample(3);
  table["aten::grid_sampler"] = [](Importer& import) -> Status {
    return grid_sample(import.result().sizes.size() - 2)(import);
  };
  table["aten::affine_grid_generator"] = affine_grid;
}

}  // namespace nereid::compiler
