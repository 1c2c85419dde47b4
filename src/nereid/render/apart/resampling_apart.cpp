#include "nereid/render/apart/resampling_apart.h"

#include <algorithm>
#include <numeric>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

// The weights [out, in] of one dimension: 1 - |s - i|, not below 0, of output o at s = scale (o + 1/2) - 1/2,
// or scale o where the corners are aligned, held within the input.
Arg weights(SimplerSteps& steps, int64_t in, int64_t out, bool aligned, double scale) {
  Arg at = steps.counted(out);
  if (aligned)
    at = steps.scaled(at, scale);
  else
    at = steps.shifted(steps.scaled(steps.shifted(at, 0.5), scale), -0.5);
  at = steps.binary("maximum", at, steps.to().one(0));
  at = steps.binary("minimum", at, steps.to().one(static_cast<double>(in - 1)));
  const Arg places = steps.spread(steps.viewed(at, {out, 1}), {out, in});
  const Arg from = steps.spread(steps.counted(in), {out, in});
  const Arg away = steps.unary("abs", steps.binary("sub", places, from));
  return steps.unary("relu", steps.shifted(steps.scaled(away, -1), 1));
}

}  // namespace

bool upsample_linear_apart(SimplerSteps& steps) {
  const Arg* x = steps.tensor(0);
  const Arg result = steps.call().result;
  if (x == nullptr || steps.type(*x) != trace::DType::kF32) return false;
  const Dims to = steps.sizes(result);
  const bool aligned = steps.flag(2, false);
  const size_t rank = to.size();
  if (rank < 3 || steps.sizes(*x).size() != rank) return false;
  Arg now = *x;
  for (size_t d = 2; d < rank; ++d) {
    const Dims sizes = steps.sizes(now);
    const int64_t in = sizes[d], out = to[d];
    if (in == out) continue;
    // The factor, where the caller gave one, is what counts, not the sizes.
    const auto given = Canonicalizer::number(steps.call().args, 3 + (d - 2));
    const double scale = aligned ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
                         : given.there && given.is > 0 ? 1 / given.is
                                                       : static_cast<double>(in) / static_cast<double>(out);
    const Arg matrix = weights(steps, in, out, aligned, scale);
    const Arg last = steps.contiguous(steps.transposed(now, d, rank - 1));
    Dims shape = steps.sizes(last);
    const int64_t rows = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) / in;
    const Arg sums = steps.linear(steps.viewed(last, {rows, in}), matrix, nullptr);
    shape.back() = out;
    now = steps.transposed(steps.viewed(sums, shape), d, rank - 1);
  }
  steps.copied(now, &result);
  return true;
}

bool upsample_nearest_apart(SimplerSteps& steps) {
  const Arg* x = steps.tensor(0);
  const Arg result = steps.call().result;
  if (x == nullptr) return false;
  const Dims to = steps.sizes(result), from = steps.sizes(*x);
  if (to.size() != from.size()) return false;
  Dims repeated;
  for (size_t d = 0; d < to.size(); ++d) {
    if (from[d] == 0 || to[d] % from[d] != 0) return false;
    repeated.push_back(from[d]), repeated.push_back(to[d] / from[d]);
  }
  Arg apart = *x;
  for (size_t d = 0; d < to.size(); ++d) apart = steps.unsqueezed(apart, 2 * d + 1);
  const Arg all = steps.copied_into_storage_of(steps.expanded(apart, repeated), result);
  steps.viewed(all, to, &result);
  return true;
}

}  // namespace nereid::render
