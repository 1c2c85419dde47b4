#include "nereid/replay/worker/inputs.h"

#include <functional>
#include <limits>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

struct Range {
  double low = 0, high = 0;
  bool never_negative() const { return low >= 0; }
  bool unit() const { return low >= 0 && high <= 1; }
};

constexpr int64_t kPart = int64_t{1} << 22;  // elements: what is made on the way is no larger

// Calls body(part, index of its first element in row-major order) for parts of the tensor.
void for_parts(const at::Tensor& tensor, const std::function<void(at::Tensor, int64_t)>& body,
               int64_t first = 0) {
  if (tensor.numel() <= kPart) return body(tensor, first);
  const auto row = tensor.numel() / tensor.size(0), rows = std::max<int64_t>(1, kPart / row);
  for (int64_t i = 0; i < tensor.size(0); i += rows) {
    const auto part = tensor.narrow(0, i, std::min(rows, tensor.size(0) - i));
    for_parts(row > kPart ? part.select(0, 0) : part, body, first + i * row);
  }
}

Range range_of(const at::Tensor& tensor) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for_parts(tensor, [&](const at::Tensor& part, int64_t) {
    const auto [low, high] = part.to(c10::kFloat).aminmax();
    range.low = at::minimum(at::scalar_tensor(range.low, at::kDouble), low.to(at::kCPU)).item().toDouble();
    range.high = at::maximum(at::scalar_tensor(range.high, at::kDouble), high.to(at::kCPU)).item().toDouble();
  });
  return range;
}

// The row-major indices of a part that begins at `first`.
at::Tensor indices(const at::Tensor& part, int64_t first) {
  return at::arange(first, first + part.numel(), part.options().dtype(c10::kLong)).view(part.sizes());
}

// True at every 64th element of `whole`, from a place that the generator chooses; at one at least.
struct SparseMask {
  SparseMask(const at::Tensor& whole, const at::Generator& generator)
      : period(std::min<int64_t>(whole.numel(), 64)),
        start(at::randint(period, {1}, generator, at::TensorOptions().dtype(c10::kLong)).item().toLong()) {}
  at::Tensor of(const at::Tensor& part, int64_t first) const {
    return indices(part, first).remainder(period).eq(start);
  }
  int64_t period, start;
};

at::Tensor one_hot_rows(const at::Tensor& part, int64_t first, int64_t width) {
  const auto index = indices(part, first);
  const auto row = index.floor_divide(width);
  return index.remainder(width).eq(row.mul(7).add(3).remainder(width));
}

}  // namespace

bool apply_kind(at::Tensor tensor, InputKind kind, at::Generator generator) {
  const auto type = tensor.scalar_type();
  const bool floating = c10::isFloatingType(type) && c10::elementSize(type) > 1;
  if (!floating || tensor.numel() < 2 || kind == InputKind::kOwn) return false;
  const bool half = type == c10::kHalf;
  const auto range = range_of(tensor);
  switch (kind) {
    case InputKind::kOwn:
      return false;
    case InputKind::kZeros:
      tensor.zero_();
      return true;
    case InputKind::kOnes:
      tensor.fill_(1);
      return true;
    case InputKind::kNegative:
      if (range.never_negative()) return false;
      tensor.abs_().neg_();
      return true;
    case InputKind::kFlipped:
      if (!range.never_negative() || range.high == 0) return false;
      tensor.neg_();
      return true;
    case InputKind::kTiny:
      tensor.mul_(half ? 0x1p-6 : 0x1p-20);
      return true;
    case InputKind::kHuge:
      if (range.unit()) return false;
      tensor.mul_(half ? 0x1p5 : 0x1p10);
      return true;
    case InputKind::kRamp:
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        const double step = (range.high - range.low) / static_cast<double>(tensor.numel() - 1);
        part.copy_(
            indices(part, first).to(c10::kDouble).mul_(step).add_(range.low).clamp_(range.low, range.high));
      });
      return true;
    case InputKind::kOneHot:
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.copy_(one_hot_rows(part, first, tensor.size(-1)));
      });
      return true;
    case InputKind::kOutliers: {
      if (range.unit()) return false;
      const SparseMask mask(tensor, generator);
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.copy_(at::where(mask.of(part, first), part.mul(half ? 0x1p4 : 0x1p8), part));
      });
      return true;
    }
    case InputKind::kInfinities: {
      const SparseMask mask(tensor, generator);
      const auto infinity = at::scalar_tensor(std::numeric_limits<double>::infinity(), tensor.options());
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        const auto signs =
            range.never_negative() ? infinity : at::where(part.lt(0), infinity.neg(), infinity);
        part.copy_(at::where(mask.of(part, first), signs, part));
      });
      return true;
    }
    case InputKind::kNans: {
      const SparseMask mask(tensor, generator);
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.masked_fill_(mask.of(part, first), std::numeric_limits<double>::quiet_NaN());
      });
      return true;
    }
  }
  return false;
}

bool perturb(at::Tensor tensor, at::Generator generator) {
  if (!c10::isFloatingType(tensor.scalar_type()) || c10::elementSize(tensor.scalar_type()) < 2 ||
      tensor.numel() == 0)
    return false;
  const auto range = range_of(tensor);
  if (!(range.low == range.high)) return false;  // not constant, or not finite
  const auto float_options = at::TensorOptions().dtype(c10::kFloat);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    if (range.low == 0)
      part.copy_(at::randn(part.sizes(), generator, float_options).mul_(0.25));
    else
      part.copy_(at::rand(part.sizes(), generator, float_options).mul_(0.5).add_(0.75).mul_(range.low));
  });
  return true;
}

std::vector<double> other_values(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  if (!c10::isFloatingType(type) || c10::elementSize(type) < 2 || tensor.numel() == 0) return {};
  const auto range = range_of(tensor);
  const double width = range.high - range.low, most = largest_finite(dtype_of(type)) / 4;
  if (!(width > 0) || !(std::abs(range.low) + std::abs(range.high) < most)) return {};
  if (range.unit()) return {range.high, range.low};
  return {range.high + width, range.never_negative() ? 0 : range.low - width};
}

void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (!c10::isFloatingType(tensor.scalar_type()) || c10::elementSize(tensor.scalar_type()) < 2) return;
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto signs =
        at::randint(2, part.sizes(), generator, at::TensorOptions().dtype(c10::kDouble)).mul_(2).sub_(1);
    part.mul_(signs.to(part.device()).mul_(epsilon(was) / 2).add_(1).to(part.scalar_type()));
  });
}

void round_by_chance(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (tensor.scalar_type() != c10::kDouble) return;
  const auto type = scalar_type(was);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(type).to(c10::kDouble);
    const auto kept = rounded.eq(part).logical_or(rounded.isfinite().logical_not());
    const auto signs =
        at::randint(2, part.sizes(), generator, at::TensorOptions().dtype(c10::kDouble)).mul_(2).sub_(1);
    const auto moved = signs.to(part.device()).mul_(epsilon(was) / 2).add_(1).mul_(part);
    part.copy_(at::where(kept, part, moved.to(type).to(c10::kDouble)));
  });
}

void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (tensor.scalar_type() != c10::kDouble) return;
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(scalar_type(was)).to(c10::kDouble);
    const auto kept = rounded.eq(part).logical_or(rounded.isfinite().logical_not());
    const auto power = part.contiguous().view(c10::kLong).bitwise_and(0x7FF0000000000000).view(c10::kDouble);
    const auto noise = at::rand(part.sizes(), generator, at::TensorOptions().dtype(c10::kDouble)).sub_(0.5);
    part.add_(at::where(kept, 0.0, noise.to(part.device()).mul_(epsilon(was)).mul_(power)));
  });
}

}  // namespace nereid::replay
