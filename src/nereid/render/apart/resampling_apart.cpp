#include "nereid/render/apart/resampling_apart.h"

#include <algorithm>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

// Of each output of a dimension: the two inputs that it lies between, and how far it is from the first to the
// second, from 0 to 1. An output o is at (o + 1/2) in / out - 1/2, at least 0, or at o (in - 1) / (out - 1)
// where the corners are aligned. All of it but `part` is integers, and exact.
struct Neighbours {
  Arg first, second, part;
};

Neighbours neighbours(SimplerSteps& steps, int64_t in, int64_t out, bool aligned) {
  const int64_t up = aligned ? in - 1 : 2 * in, down = aligned ? std::max<int64_t>(out - 1, 1) : 2 * out;
  Arg places = steps.counted(out, trace::DType::kI64);
  places = steps.whole("mul.Tensor", places, up);  // by `down`, then
  if (!aligned) places = steps.whole("clamp_min", steps.whole("add.Tensor", places, in - out), 0);
  const Arg first = steps.whole("floor_divide.Scalar", places, down);
  const Arg left = steps.whole("remainder.Scalar", places, down);
  const Arg part = steps.scaled(steps.cast(left, trace::DType::kF32), 1 / static_cast<double>(down));
  return {first, steps.whole("clamp_max", steps.whole("add.Tensor", first, 1), in - 1), part};
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
  for (size_t d = 2; d < rank; ++d) {
    // A factor that the caller gave counts, not the sizes.
    const auto factor = Canonicalizer::number(steps.call().args, 3 + (d - 2));
    if (!aligned && factor.there &&
        factor.is * static_cast<double>(steps.sizes(*x)[d]) != static_cast<double>(to[d]))
      return false;
  }
  Arg now = *x;
  for (size_t d = 2; d < rank; ++d) {
    const Dims sizes = steps.sizes(now);
    const int64_t in = sizes[d], out = to[d];
    if (in == out) continue;
    const Neighbours at = neighbours(steps, in, out, aligned);
    const Arg last = steps.contiguous(steps.transposed(now, d, rank - 1));
    Dims shape = steps.sizes(last);
    const int64_t count = product(shape) / in;
    const Arg rows = steps.viewed(last, {count, in});
    const Arg rest = steps.shifted(steps.scaled(at.part, -1), 1);
    const Arg before = steps.binary("mul", steps.chosen(rows, at.first), rest),
              after = steps.binary("mul", steps.chosen(rows, at.second), at.part);
    shape.back() = out;
    now = steps.transposed(steps.viewed(steps.binary("add", before, after), shape), d, rank - 1);
  }
  steps.copied(now, &result);
  return true;
}

bool upsample_nearest_apart(SimplerSteps& steps) {
  const Arg* x = steps.tensor(0);
  const Arg result = steps.call().result;
  if (x == nullptr || steps.type(*x) != trace::DType::kF32) return false;
  const Dims to = steps.sizes(result), from = steps.sizes(*x);
  if (to.size() != from.size()) return false;
  Dims repeated;
  for (size_t d = 0; d < to.size(); ++d) {
    if (from[d] == 0 || to[d] % from[d] != 0) return false;
    repeated.push_back(from[d]), repeated.push_back(to[d] / from[d]);
  }
  Arg apart = *x;
  for (size_t d = 0; d < to.size(); ++d) apart = steps.unsqueezed(apart, 2 * d + 1);
  const Arg all = steps.room(result, repeated);
  steps.viewed(steps.copied(steps.expanded(apart, repeated), &all), to, &result);
  return true;
}

}  // namespace nereid::render
