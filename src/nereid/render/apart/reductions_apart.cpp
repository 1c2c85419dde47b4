#include "nereid/render/apart/reductions_apart.h"

#include <cmath>
#include <numbers>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

constexpr int64_t kLongestTransform = 2048;

// cos and sin of 2 pi j k / n, for each of `rows` j and `columns` k.
struct Waves {
  Arg cosines, sines;
};

Waves waves(SimplerSteps& steps, int64_t n, int64_t rows, int64_t columns) {
  const Arg j =
      steps.spread(steps.viewed(steps.counted(rows, trace::DType::kI64), {rows, 1}), {rows, columns});
  const Arg k = steps.spread(steps.counted(columns, trace::DType::kI64), {rows, columns});
  const Arg turns = steps.whole("remainder.Scalar", steps.whole_product(j, k), n);
  const Arg angle =
      steps.scaled(steps.cast(turns, trace::DType::kF32), 2 * std::numbers::pi / static_cast<double>(n));
  return {steps.unary("cos", angle), steps.unary("sin", angle)};
}

// The factor of a transform of n that is normalised so: not, by its root, or by n.
double factor_of(int64_t how, int64_t n) {
  return how == 0 ? 1 : how == 1 ? 1 / std::sqrt(static_cast<double>(n)) : 1 / static_cast<double>(n);
}

}  // namespace

bool reduction_apart(SimplerSteps& steps) {
  const Arg* x = steps.tensor(0);
  const auto given = steps.dimension(1);
  if (x == nullptr || !given || steps.type(*x) != trace::DType::kF32 || !steps.call().kwargs.empty() ||
      !std::holds_alternative<trace::TensorRef>(steps.call().result.node))
    return false;
  const auto* listed = std::get_if<trace::List>(&steps.call().args[1].node);
  const Dims sizes = steps.sizes(*x), to = steps.sizes(steps.call().result);
  if (listed == nullptr || listed->items.size() != 1 || sizes.empty() || to.empty()) return false;
  const size_t dim = *given;
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(dim);
  const int64_t outer = product({sizes.begin(), place}), inner = product({place + 1, sizes.end()});
  const Arg& result = steps.call().result;
  if (sizes[dim] == 1) {
    const Arg copy = steps.room(result, sizes);
    steps.viewed(steps.copied(*x, &copy), to, &result);
    return true;
  }
  if (sizes.size() <= 3) return false;
  const Dims shape = inner == 1 ? Dims{outer, sizes[dim]} : Dims{outer, sizes[dim], inner};
  const Arg flat = steps.viewed(steps.contiguous(*x), shape);
  const std::string op = steps.call().op.substr(6);
  const Arg reduced = steps.room(result, inner == 1 ? Dims{outer} : Dims{outer, inner});
  steps.viewed(steps.reduced(op, flat, 1, &reduced), to, &result);
  return true;
}

bool fourier_apart(SimplerSteps& steps) {
  const std::string& op = steps.call().op;
  const bool from_real = op == "aten::_fft_r2c", to_real = op == "aten::_fft_c2r";
  const Arg* x = steps.tensor(0);
  const auto given = steps.dimension(1);
  const auto how = Canonicalizer::number(steps.call().args, 2);
  if (x == nullptr || !given || !how.there || steps.call().args.size() < 4 ||
      steps.type(*x) != (from_real ? trace::DType::kF32 : trace::DType::kC64))
    return false;
  const Arg& result = steps.call().result;
  const Dims from = steps.sizes(*x), to = steps.sizes(result);
  const size_t dim = *given, last = from.size() - 1;
  const int64_t n = to_real ? to[dim] : from[dim], in = from[dim], out = to[dim];
  if (n < 2 || n > kLongestTransform) return false;
  const bool forward = from_real || (!to_real && steps.flag(3, true));

  // Rows along the transformed dimension: real parts, and imaginary ones.
  const auto rows_of = [&](const Arg& part) {
    const Arg turned = steps.contiguous(steps.transposed(part, dim, last));
    return steps.viewed(turned, {product(from) / in, in});
  };
  Arg re, im;
  if (from_real) {
    re = rows_of(*x);
  } else {
    const bool lazy = steps.to().value(*x).conj || steps.to().value(*x).neg;
    const Arg both = steps.parts_of_complex(lazy ? steps.copied(*x) : *x);
    re = rows_of(steps.select(both, from.size(), 0)), im = rows_of(steps.select(both, from.size(), 1));
  }
  Waves by = waves(steps, n, out, in);
  if (to_real) {  // each frequency but 0 and n / 2 stands for two
    std::vector<Arg> weights = {steps.to().one(1)};
    const int64_t twice = (n - 1) / 2;
    if (twice > 0) weights.push_back(steps.to().filled(2, {twice}));
    if (n % 2 == 0) weights.push_back(steps.to().one(1));
    const Arg all = steps.spread(steps.joined(weights, 0), {out, in});
    by = {steps.binary("mul", by.cosines, all), steps.binary("mul", by.sines, all)};
  }
  const auto product = [&](const Arg& rows, const Arg& matrix) {
    return steps.linear(rows, matrix, nullptr);
  };
  const double factor = factor_of(static_cast<int64_t>(how.is), n), sign = forward ? -1 : 1;
  const auto placed = [&](Arg rows) {
    if (factor != 1) rows = steps.scaled(rows, factor);
    Dims shape = to;
    std::swap(shape[dim], shape[last]);
    return steps.transposed(steps.viewed(rows, shape), dim, last);
  };
  if (to_real) {  // the sum of re cos - im sin
    steps.copied(placed(steps.binary("sub", product(re, by.cosines), product(im, by.sines))), &result);
    return true;
  }
  // (re + i im) (cos + i sign sin)
  Arg real = product(re, by.cosines), other = steps.scaled(product(re, by.sines), sign);
  if (!from_real) {
    real = steps.binary("sub", real, steps.scaled(product(im, by.sines), sign));
    other = steps.binary("add", other, product(im, by.cosines));
  }
  Dims both = to;
  both.push_back(2);
  const Arg pairs = steps.room(result, both);
  steps.stacked({placed(real), placed(other)}, to.size(), &pairs);
  steps.complex_of_parts(pairs, result);
  return true;
}

}  // namespace nereid::render
