#include "nereid/render/apart/windows_apart.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

constexpr int64_t kMostOfWindows = int64_t{1} << 27;  // elements of all windows together

// A window along each of the last dimensions.
struct Window {
  Dims size, stride, padding, dilation;
  int64_t extent(size_t d) const { return dilation[d] * (size[d] - 1) + 1; }
};

// [..., L1, L2, ..., K1, K2, ...] of x [..., I1, I2, ...], where `padding` is done: views. What is over at
// the end of a dimension is left out.
Arg all_windows(SimplerSteps& steps, Arg x, const Window& window, const Dims& counts) {
  const size_t dims = window.size.size(), leading = steps.sizes(x).size() - dims;
  for (size_t d = 0; d < dims; ++d)
    x = steps.slice(x, leading + d, 0, (counts[d] - 1) * window.stride[d] + window.extent(d));
  for (size_t d = 0; d < dims; ++d) {
    x = steps.windows(x, leading + d, window.extent(d), window.stride[d]);
    if (window.dilation[d] > 1) {
      const size_t last = steps.sizes(x).size() - 1;
      x = steps.slice(x, last, 0, steps.sizes(x)[last], window.dilation[d]);
    }
  }
  return x;
}

// y [N, O, L...] of x [N, C, I...], padded, and weights [O, C / groups, K...].
void product_of_windows(SimplerSteps& steps, const Arg& x, const Arg& weight, const Arg* bias,
                        const Window& window, int64_t groups) {
  const Arg result = steps.call().result;
  const Dims y = steps.sizes(result), w = steps.sizes(weight);
  const auto dims = static_cast<int64_t>(window.size.size());
  const Dims counts(y.begin() + 2, y.end());
  const int64_t batch = y[0], out = y[1], rows = batch * product(counts), taps = product(window.size) * w[1];
  // [N, G, C / G, L..., K...], to [G, N, L..., C / G, K...].
  const Arg seen = steps.split(all_windows(steps, x, window, counts), 1, groups);
  Dims order = {1, 0};
  for (int64_t d = 0; d < dims; ++d) order.push_back(3 + d);
  order.push_back(2);
  for (int64_t d = 0; d < dims; ++d) order.push_back(3 + dims + d);
  const Arg columns = steps.copied(steps.permuted(seen, order));
  const Arg matrix = steps.contiguous(weight);
  Arg sums;  // [G, N * L, O / G]
  if (groups == 1) {
    sums = steps.linear(steps.viewed(columns, {rows, taps}), steps.viewed(matrix, {out, taps}), bias);
  } else {
    const Arg turned = steps.transposed(steps.viewed(matrix, {groups, out / groups, taps}), 1, 2);
    sums = steps.batched_product(steps.viewed(columns, {groups, rows, taps}), steps.copied(turned));
  }
  Dims shape = {groups, batch};
  shape.insert(shape.end(), counts.begin(), counts.end());
  shape.push_back(out / groups);
  Dims back = {1, 0, dims + 2};
  for (int64_t d = 0; d < dims; ++d) back.push_back(2 + d);
  const Arg found = steps.permuted(steps.viewed(sums, shape), back);
  if (groups == 1 || bias == nullptr) {
    const Arg copy = steps.room(result, steps.sizes(found));
    steps.viewed(steps.copied(found, &copy), y, &result);
    return;
  }
  Dims each(static_cast<size_t>(dims) + 1, 1);
  each[0] = out;
  steps.binary("add", steps.viewed(steps.copied(found), y),
               steps.spread(steps.viewed(steps.contiguous(*bias), each), y), &result);
}

// Zeros between the elements of a dimension, so that each is `stride` from the next.
Arg with_zeros_between(SimplerSteps& steps, const Arg& x, size_t dim, int64_t stride) {
  if (stride == 1) return x;
  const Dims before = steps.sizes(x);
  std::vector<std::pair<int64_t, int64_t>> by(before.size() + 1, {0, 0});
  by[dim + 1] = {0, stride - 1};
  Dims after = before;
  after[dim] *= stride;
  const Arg apart = steps.viewed(steps.padded(steps.unsqueezed(x, dim + 1), by), after);
  return steps.slice(apart, dim, 0, (before[dim] - 1) * stride + 1);
}

// A transposed convolution is one of stride 1 of x with zeros between, by the weights reversed.
void transposed_convolution(SimplerSteps& steps, const Arg& x, const Arg& weight, const Arg* bias,
                            Window window, const Dims& more, int64_t groups) {
  const Dims w = steps.sizes(weight);  // [C, O / groups, K...]
  const size_t dims = window.size.size();
  Dims spatial(dims);
  std::iota(spatial.begin(), spatial.end(), 2);
  const Arg reversed = product(window.size) == 1 ? steps.contiguous(weight) : steps.flipped(weight, spatial);
  const Arg turned = steps.transposed(steps.split(reversed, 0, groups), 1, 2);
  Dims sizes = {w[1] * groups, w[0] / groups};
  sizes.insert(sizes.end(), window.size.begin(), window.size.end());
  const Arg matrix = steps.viewed(steps.copied(turned), sizes);
  Arg apart = x;
  std::vector<std::pair<int64_t, int64_t>> by(dims + 2, {0, 0});
  for (size_t d = 0; d < dims; ++d) {
    apart = with_zeros_between(steps, apart, 2 + d, window.stride[d]);
    const int64_t around = window.extent(d) - 1 - window.padding[d];
    by[2 + d] = {around, around + more[d]};
    window.stride[d] = 1;
  }
  product_of_windows(steps, steps.padded(apart, by), matrix, bias, window, groups);
}

// Steps of a pool: `op` over each window of x.
bool reduce_windows(SimplerSteps& steps, const std::string& op, const Window& window, double padding,
                    const Arg& result) {
  const Arg x = *steps.tensor(0);
  const Dims from = steps.sizes(x), to = steps.sizes(result);
  if (steps.type(x) != trace::DType::kF32) return false;
  const size_t dims = window.size.size(), leading = from.size() - dims;
  std::vector<std::pair<int64_t, int64_t>> by(from.size(), {0, 0});
  for (size_t d = 0; d < dims; ++d) {
    const int64_t before = window.padding[d];
    const int64_t end = (to[leading + d] - 1) * window.stride[d] + window.extent(d);
    by[leading + d] = {before, std::max<int64_t>(0, end - before - from[leading + d])};
  }
  if (product(to) * product(window.size) > kMostOfWindows) return false;
  const Dims counts(to.begin() + static_cast<std::ptrdiff_t>(leading), to.end());
  const Arg seen = steps.copied(all_windows(steps, steps.padded(x, by, padding), window, counts));
  const Arg rows = steps.viewed(seen, {product(to), product(window.size)});
  const Arg reduced = steps.room(result, {product(to)});
  steps.viewed(steps.reduced(op, rows, 1, &reduced), to, &result);
  return true;
}

// Of "aten::max_pool2d_with_indices", say, 2.
size_t dimensions_of(const std::string& op) {
  for (const char* name : {"1d", "2d", "3d"})
    if (op.find(name) != op.npos) return static_cast<size_t>(name[0] - '0');
  return 0;
}

}  // namespace

bool convolution_apart(SimplerSteps& steps) {
  const Arg *x = steps.tensor(0), *weight = steps.tensor(1), *bias = steps.tensor(2);
  const auto& args = steps.call().args;
  if (x == nullptr || weight == nullptr || args.size() < 9 || steps.type(*x) != trace::DType::kF32)
    return false;
  const Dims w = steps.sizes(*weight), from = steps.sizes(*x), to = steps.sizes(steps.call().result);
  if (w.size() < 3 || from.size() != w.size()) return false;
  const size_t dims = w.size() - 2;
  const auto stride = steps.integers(3, dims, 1), padding = steps.integers(4, dims, 0),
             dilation = steps.integers(5, dims, 1), more = steps.integers(7, dims, 0);
  const auto* groups = std::get_if<int64_t>(&args[8].node);
  if (!stride || !padding || !dilation || !more || groups == nullptr) return false;
  Window window{{w.begin() + 2, w.end()}, *stride, *padding, *dilation};
  if (product(to) / to[1] * product(window.size) * from[1] > kMostOfWindows) return false;
  if (steps.flag(6, false)) {
    transposed_convolution(steps, *x, *weight, bias, window, *more, *groups);
    return true;
  }
  std::vector<std::pair<int64_t, int64_t>> by(from.size(), {0, 0});
  for (size_t d = 0; d < dims; ++d) by[2 + d] = {window.padding[d], window.padding[d]};
  product_of_windows(steps, steps.padded(*x, by), *weight, bias, window, *groups);
  return true;
}

bool max_pool_apart(SimplerSteps& steps) {
  const auto results = trace::tensors_in(steps.call().result);
  const size_t dims = dimensions_of(steps.call().op);
  if (steps.tensor(0) == nullptr || results.empty() || steps.sizes(*steps.tensor(0)).size() <= dims)
    return false;
  if (results.size() > 1 && is_read(steps.to().so_far(), steps.to().value(results[1]).storage)) return false;
  const auto size = steps.integers(1, dims, 1);
  if (!size) return false;
  const auto stride = steps.integers(2, dims, 0), padding = steps.integers(3, dims, 0),
             dilation = steps.integers(4, dims, 1);
  if (!stride || !padding || !dilation) return false;
  Window window{*size, (*stride)[0] == 0 ? *size : *stride, *padding, *dilation};
  return reduce_windows(steps, "amax", window, -std::numeric_limits<double>::infinity(),
                        {trace::TensorRef{results[0]}});
}

// Padding counts, as it does by default.
bool avg_pool_apart(SimplerSteps& steps) {
  const size_t dims = dimensions_of(steps.call().op);
  const auto& args = steps.call().args;
  if (steps.tensor(0) == nullptr || steps.sizes(*steps.tensor(0)).size() <= dims || steps.flag(4, false) ||
      !steps.flag(5, true) || (args.size() > 6 && !Canonicalizer::is_none(args[6])))
    return false;
  const auto size = steps.integers(1, dims, 1), stride = steps.integers(2, dims, 0),
             padding = steps.integers(3, dims, 0);
  if (!size || !stride || !padding) return false;
  const Window window{*size, (*stride)[0] == 0 ? *size : *stride, *padding, Dims(dims, 1)};
  return reduce_windows(steps, "mean.dim", window, 0, steps.call().result);
}

bool adaptive_avg_pool_apart(SimplerSteps& steps) {
  const size_t dims = dimensions_of(steps.call().op);
  if (steps.tensor(0) == nullptr) return false;
  const Dims from = steps.sizes(*steps.tensor(0)), to = steps.sizes(steps.call().result);
  if (from.size() <= dims) return false;
  Dims size;
  for (size_t d = from.size() - dims; d < from.size(); ++d) {
    if (to[d] == 0 || from[d] % to[d] != 0) return false;
    size.push_back(from[d] / to[d]);
  }
  return reduce_windows(steps, "mean.dim", {size, size, Dims(dims, 0), Dims(dims, 1)}, 0,
                        steps.call().result);
}

}  // namespace nereid::render
