// Pooling and resampling: reductions over windows, and weighted neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

// Windows over the last dimensions of x.
struct Windows {
  Extents sizes, in, window;  // of the result, of x, of a window
  std::vector<int64_t> stride, padding, dilation;
  size_t first = 0;            // dimension that is pooled
  Extents extents = {};        // the result's, then the window's
  std::vector<Index> at = {};  // in x, over `extents`
  ExprId inside = -1;          // whether that exists

  size_t area() const { return window.size(); }

  Windows(Importer& import, const Extents& result, const Extents& x, Extents size, std::vector<int64_t> step,
          std::vector<int64_t> pad, std::vector<int64_t> apart)
      : sizes(result),
        in(x),
        window(std::move(size)),
        stride(std::move(step)),
        padding(std::move(pad)),
        dilation(std::move(apart)) {
    first = sizes.size() - area();
    extents = sizes;
    extents.insert(extents.end(), window.begin(), window.end());
    at = dimensions(sizes.size());
    inside = import.exprs().integer(1, DType::kBool);
    for (size_t i = 0; i < area(); ++i) {
      at[first + i] = start(i) + Index::dimension(static_cast<int>(sizes.size() + i)) * dilation[i];
      inside = import.exprs().apply(
          Fn::kAnd, {inside, import.exprs().within(at[first + i], 0, in[first + i], extents)});
    }
  }
  Index start(size_t i) const {
    return Index::dimension(static_cast<int>(first + i)) * stride[i] - Index(padding[i]);
  }
};

// A list of one number stands for all.
std::vector<int64_t> spread(std::vector<int64_t> list, size_t count, int64_t otherwise) {
  if (list.empty()) list = {otherwise};
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

std::vector<int64_t> strides_of(Importer& import, const std::vector<int64_t>& window) {
  const auto given = import.integers(import.arg(2, "stride"));
  return given.empty() ? window : spread(given, window.size(), 1);
}

Index dim_of(size_t d) { return Index::dimension(static_cast<int>(d)); }

// Defines the second result: where the largest of `body` in each window stands, as an index in its plane.
Status largest_of_windows(Importer& import, const Extents& sizes, const Extents& window, Value body,
                          const std::vector<Value>& starts, const Extents& plane,
                          const std::vector<int64_t>& dilation) {
  const TensorId which =
      import.temporary(Reduction::kArgMax, sizes, window, body.id(), DType::kI64, "max_pool_tap");
  Value tap(import.exprs(), import.load(which, dimensions(sizes.size())));
  Value linear = tap.constant(0);
  int64_t weight = 1;
  for (size_t i = window.size(); i-- > 0;) {
    const Value size = tap.constant(static_cast<double>(window[i]));
    const Value next = tap.apply(Fn::kIntDiv, size);
    const Value place = starts[i] + (tap - next * size) * static_cast<double>(dilation[i]);
    linear = linear + place * static_cast<double>(weight);
    weight *= plane[i];
    tap = next;
  }
  return import.define(import.results().at(1), linear.id(), "max_pool_index");
}

OperatorImport max_pool(size_t area) {
  return [area](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto window = spread(import.integers(import.arg(1, "kernel_size")), area, 1);
    const Windows windows(import, import.result().sizes, import.value(x.value()).sizes, window,
                          strides_of(import, window),
                          spread(import.integers(import.arg(3, "padding")), area, 0),
                          spread(import.integers(import.arg(4, "dilation")), area, 1));
    import.over_windows();
    const Value element(import.exprs(), import.read(*x, windows.at, windows.extents));
    const Value body = Value(import.exprs(), windows.inside)
                           .where(element, element.constant(-std::numeric_limits<double>::infinity()));
    const auto results = import.results();
    NEREID_TRY_STATUS(
        import.define_reduction(results[0], Reduction::kMax, windows.sizes, window, body.id(), "max_pool"));
    if (results.size() < 2) return ok_status();
    std::vector<Value> starts;
    for (size_t i = 0; i < area; ++i)
      starts.emplace_back(import.exprs(), import.exprs().index(windows.start(i)));
    const Extents plane(windows.in.begin() + static_cast<ptrdiff_t>(windows.first), windows.in.end());
    return largest_of_windows(import, windows.sizes, window, body, starts, plane, windows.dilation);
  };
}

// How many elements a window counts: those it covers of x, or of x with its padding.
Value counted(Importer& import, const Windows& windows, bool padded) {
  Value count(import.exprs(), import.exprs().integer(1));
  for (size_t i = 0; i < windows.area(); ++i) {
    const int64_t size = windows.in[windows.first + i], pad = padded ? windows.padding[i] : 0;
    const Index start = windows.start(i), end = start + Index(windows.window[i]);
    const Bounds bounds = end.bounds(windows.sizes);
    const Value from(import.exprs(), import.exprs().index(start)),
        to(import.exprs(), import.exprs().index(end));
    const bool clipped = bounds.high > size + pad || start.bounds(windows.sizes).low < -pad;
    const Value length =
        clipped ? minimum(to, static_cast<double>(size + pad)) - maximum(from, static_cast<double>(-pad))
                : count.constant(static_cast<double>(windows.window[i]));
    count = count * length;
  }
  return count;
}

OperatorImport avg_pool(size_t area) {
  return [area](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto window = spread(import.integers(import.arg(1, "kernel_size")), area, 1);
    const Windows windows(import, import.result().sizes, import.value(x.value()).sizes, window,
                          strides_of(import, window),
                          spread(import.integers(import.arg(3, "padding")), area, 0), spread({}, area, 1));
    import.over_windows();
    const Value element(import.exprs(), import.read(*x, windows.at, windows.extents));
    const Value body = Value(import.exprs(), windows.inside).where(element, element.constant(0));
    const TensorId sum =
        import.temporary(Reduction::kSum, windows.sizes, window, body.id(), body.type(), "avg_pool");
    const Value total(import.exprs(), import.load(sum, dimensions(windows.sizes.size())));
    const int64_t given = import.integer(import.arg(6, "divisor_override"), 0);
    const Value count = given != 0
                            ? Value(import.exprs(), import.exprs().integer(given))
                            : counted(import, windows, import.flag(import.arg(5, "count_include_pad"), true));
    const Expr known = import.exprs()[count.id()];
    const Value mean = known.kind == Expr::Kind::kConstant ? total * Ratio{.over = 1, .under = known.integer}
                                                           : total / count.cast(total.type());
    return import.define(import.results()[0], mean.id(), "avg_pool");
  };
}

// From floor(i in / out) to ceil((i + 1) in / out).
OperatorImport adaptive_pool(size_t area, bool maximum_of) {
  return [area, maximum_of](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
    const size_t first = sizes.size() - area;
    Extents window, extents = sizes;
    for (size_t i = 0; i < area; ++i) {
      const int64_t from = in[first + i], to = std::max<int64_t>(sizes[first + i], 1);
      window.push_back(from % to == 0 ? from / to : from / to + 2);
      extents.push_back(window.back());
    }
    import.over_windows();
    auto at = dimensions(sizes.size());
    ExprId inside = import.exprs().integer(1, DType::kBool);
    Value count(import.exprs(), import.exprs().integer(1));
    for (size_t i = 0; i < area; ++i) {
      const size_t d = first + i;
      const Index own = Index::dimension(static_cast<int>(d));
      const Index start = quotient(own * in[d], sizes[d], extents);
      const Index end = quotient((own + Index(1)) * in[d] + Index(sizes[d] - 1), sizes[d], extents);
      at[d] = start + Index::dimension(static_cast<int>(sizes.size() + i));
      const Index left = at[d] - end;
      inside = import.exprs().apply(Fn::kAnd,
                                    {inside, import.exprs().within(left, -(int64_t{1} << 40), 0, extents)});
      count = count * Value(import.exprs(), import.exprs().index(end - start));
    }
    const Value element(import.exprs(), import.read(*x, at, extents));
    const double nothing = maximum_of ? -std::numeric_limits<double>::infinity() : 0;
    const Value body = Value(import.exprs(), inside).where(element, element.constant(nothing));
    if (maximum_of) {
      NEREID_TRY_STATUS(import.define_reduction(import.results()[0], Reduction::kMax, sizes, window,
                                                body.id(), "max_pool"));
      if (import.results().size() < 2) return ok_status();
      std::vector<Value> starts;
      for (size_t i = 0; i < area; ++i)
        starts.emplace_back(import.exprs(), import.exprs().index(quotient(dim_of(first + i) * in[first + i],
                                                                          sizes[first + i], sizes)));
      return largest_of_windows(import, sizes, window, body, starts,
                                {in.begin() + static_cast<ptrdiff_t>(first), in.end()},
                                std::vector<int64_t>(area, 1));
    }
    const TensorId sum = import.temporary(Reduction::kSum, sizes, window, body.id(), body.type(), "avg_pool");
    const Value total(import.exprs(), import.load(sum, dimensions(sizes.size())));
    const Expr known = import.exprs()[count.id()];
    const Value mean = known.kind == Expr::Kind::kConstant ? total * Ratio{.over = 1, .under = known.integer}
                                                           : total / count.cast(total.type());
    return import.define(import.results()[0], mean.id(), "avg_pool");
  };
}

// What one step in the result is in x: by sizes, or by the factor that was asked for.
double scale_of(Importer& import, const trace::Arg* given, int64_t in, int64_t out) {
  const double factor = import.number(given, 0);
  return factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
}

// As PyTorch rounds, in float32. `exact`: from the middle of an element of the result.
OperatorImport nearest(size_t area, bool exact) {
  return [area, exact](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
    const size_t first = sizes.size() - area;
    auto at = dimensions(sizes.size());
    std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
    bool ratios = true;  // of sizes, in all dimensions
    for (size_t i = 0; i < area; ++i) {
      const size_t d = first + i;
      const auto scale = static_cast<float>(scale_of(import, import.arg(2 + i, ""), in[d], sizes[d]));
      const float begin = exact ? 0.5F : 0;
      const Index ratio = exact ? quotient((at[d] * 2 + Index(1)) * in[d], sizes[d] * 2, sizes)
                                : quotient(at[d] * in[d], sizes[d], sizes);
      bool same = true;
      for (int64_t own = 0; own < sizes[d] && same; ++own) {
        const auto from = static_cast<int64_t>(std::floor((static_cast<float>(own) + begin) * scale));
        const int64_t by_sizes = exact ? (2 * own + 1) * in[d] / (2 * sizes[d]) : own * in[d] / sizes[d];
        same = std::min<int64_t>(from, in[d] - 1) == by_sizes;
      }
      if (same) {
        at[d] = ratio;
        continue;
      }
      ratios = false;
      const Value own = Value(import.exprs(), import.exprs().index(at[d])).cast(DType::kF32);
      const Value from = ((own + double{begin}) * double{scale}).apply(Fn::kFloor);
      further[d] = minimum(from, static_cast<double>(in[d] - 1)).cast(DType::kI64).id();
      at[d] = Index();
    }
    const ExprId element = ratios ? import.read(*x, at, sizes) : import.read(*x, at, further, sizes);
    return import.define(import.results()[0], element, "upsample_nearest");
  };
}

// Of 2^area neighbours, weighted by distance.
OperatorImport linear(size_t area) {
  return [area](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const bool corners = import.flag(import.arg(2, "align_corners"), false);
    const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
    const DType type = compute_type(import.result().dtype);
    const size_t first = sizes.size() - area;
    struct Neighbours {
      ExprId index[2];
      ExprId weight[2];
    };
    std::vector<Neighbours> along;
    for (size_t i = 0; i < area; ++i) {
      const size_t d = first + i;
      const Value own =
          Value(import.exprs(), import.exprs().index(Index::dimension(static_cast<int>(d)))).cast(type);
      const double scale = !corners       ? scale_of(import, import.arg(3 + i, ""), in[d], sizes[d])
                           : sizes[d] > 1 ? static_cast<double>(in[d] - 1) / static_cast<double>(sizes[d] - 1)
                                          : 0;
      const Value from = corners ? own * scale : maximum((own + 0.5) * scale - 0.5, 0);
      const auto last = static_cast<double>(in[d] - 1);
      const Value low = minimum(from.cast(DType::kI64), last), high = minimum(low + 1, last);
      const Value part = from - low.cast(type);
      along.push_back({{low.id(), high.id()}, {(part.constant(1) - part).id(), part.id()}});
    }
    std::optional<Value> sum;
    for (size_t corner = 0; corner < size_t{1} << area; ++corner) {
      auto at = dimensions(sizes.size());
      std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
      std::optional<Value> weight;
      for (size_t i = 0; i < area; ++i) {
        const size_t side = corner >> i & 1;
        at[first + i] = Index();
        further[first + i] = along[i].index[side];
        const Value own(import.exprs(), along[i].weight[side]);
        weight = weight ? *weight * own : own;
      }
      const Value term = Value(import.exprs(), import.read(*x, at, further, sizes)).cast(type) * *weight;
      sum = sum ? *sum + term : term;
    }
    return import.define(import.results()[0], sum->id(), "upsample_linear");
  };
}

// Each element is the sum of the windows that cover it: [n, c window, places] as [n, c, h, w].
Status col2im(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto window = import.integers(import.arg(2, "kernel_size")),
             dilation = import.integers(import.arg(3, "dilation"));
  const auto padding = import.integers(import.arg(4, "padding")),
             stride = import.integers(import.arg(5, "stride"));
  const Extents sizes = import.result().sizes;
  if (sizes.size() != 4 || window.size() != 2) return import.cannot("expected a batch of windows");
  Extents extents = sizes;
  extents.insert(extents.end(), window.begin(), window.end());
  ExprId inside = import.exprs().integer(1, DType::kBool);
  std::array<Index, 2> place;
  std::array<int64_t, 2> places{};
  for (size_t i = 0; i < 2; ++i) {
    places[i] = (sizes[2 + i] + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1) / stride[i] + 1;
    const Index from = Index::dimension(static_cast<int>(2 + i)) + Index(padding[i]) -
                       Index::dimension(static_cast<int>(4 + i)) * dilation[i];
    place[i] = quotient(from, stride[i], extents);
    inside = import.exprs().apply(Fn::kAnd, {inside, import.exprs().within(place[i], 0, places[i], extents)});
    inside = import.exprs().apply(
        Fn::kAnd, {inside, import.exprs().within(remainder(from, stride[i], extents), 0, 1, extents)});
  }
  const Index tap = (Index::dimension(1) * window[0] + Index::dimension(4)) * window[1] + Index::dimension(5);
  const Value element(import.exprs(),
                      import.read(*x, {Index::dimension(0), tap, place[0] * places[1] + place[1]}, extents));
  import.over_windows();
  return import.define_reduction(import.results()[0], Reduction::kSum, sizes, window,
                                 Value(import.exprs(), inside).where(element, element.constant(0)).id(),
                                 "fold");
}

}  // namespace

void add_pools(OperatorTable& table) {
  for (size_t area = 1; area <= 3; ++area) {
    const std::string rank = std::to_string(area) + "d";
    table["aten::max_pool" + rank] = max_pool(area);
    table["aten::max_pool" + rank + "_with_indices"] = max_pool(area);
    table["aten::avg_pool" + rank] = avg_pool(area);
    for (const char* under : {"", "_"})
      table[std::string("aten::") + under + "adaptive_avg_pool" + rank] = adaptive_pool(area, false);
    table["aten::adaptive_max_pool" + rank] = adaptive_pool(area, true);
    table["aten::upsample_nearest" + rank] = nearest(area, false);
    table["aten::_upsample_nearest_exact" + rank] = nearest(area, true);
  }
  table["aten::upsample_linear1d"] = linear(1);
  table["aten::upsample_bilinear2d"] = linear(2);
  table["aten::upsample_trilinear3d"] = linear(3);
  table["aten::col2im"] = col2im;
}

}  // namespace nereid::compiler
