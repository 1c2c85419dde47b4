#include "nereid/replay/worker/inputs.h"

#include <ATen/Functions.h>

#include <limits>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

struct Range {
  double low = 0, high = 0;
  bool never_negative() const { return low >= 0; }
  bool unit() const { return low >= 0 && high <= 1; }
};

Range range_of(const at::Tensor& tensor) {
  const auto [low, high] = tensor.to(c10::kFloat).aminmax();
  return {low.item().toDouble(), high.item().toDouble()};
}

// True at every 64th element, from a place that the generator chooses; at one at least.
at::Tensor sparse_mask(const at::Tensor& tensor, const at::Generator& generator) {
  const auto n = tensor.numel();
  const auto period = std::min<int64_t>(n, 64);
  const auto start =
      at::randint(period, {1}, generator, at::TensorOptions().dtype(c10::kLong)).item().toLong();
  const auto index = at::arange(n, tensor.options().dtype(c10::kLong)).view(tensor.sizes());
  return index.remainder(period).eq(start);
}

at::Tensor one_hot_rows(const at::Tensor& tensor) {
  const auto width = tensor.size(-1);
  const auto index = at::arange(tensor.numel(), tensor.options().dtype(c10::kLong)).view(tensor.sizes());
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
      tensor.copy_(tensor.abs().neg());
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
      tensor.copy_(at::linspace(range.low, range.high, tensor.numel(), tensor.options().dtype(c10::kFloat))
                       .view(tensor.sizes()));
      return true;
    case InputKind::kOneHot:
      tensor.copy_(one_hot_rows(tensor));
      return true;
    case InputKind::kOutliers:
      if (range.unit()) return false;
      tensor.copy_(at::where(sparse_mask(tensor, generator), tensor.mul(half ? 0x1p4 : 0x1p8), tensor));
      return true;
    case InputKind::kInfinities: {
      const auto mask = sparse_mask(tensor, generator);
      const auto infinity = at::scalar_tensor(std::numeric_limits<double>::infinity(), tensor.options());
      const auto signs =
          range.never_negative() ? infinity : at::where(tensor.lt(0), infinity.neg(), infinity);
      tensor.copy_(at::where(mask, signs, tensor));
      return true;
    }
    case InputKind::kNans:
      tensor.masked_fill_(sparse_mask(tensor, generator), std::numeric_limits<double>::quiet_NaN());
      return true;
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
  if (range.low == 0)
    tensor.copy_(at::randn(tensor.sizes(), generator, float_options).mul_(0.25));
  else
    tensor.copy_(at::rand(tensor.sizes(), generator, float_options).mul_(0.5).add_(0.75).mul_(range.low));
  return true;
}

void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (!c10::isFloatingType(tensor.scalar_type()) || c10::elementSize(tensor.scalar_type()) < 2) return;
  const auto signs =
      at::randint(2, tensor.sizes(), generator, at::TensorOptions().dtype(c10::kDouble)).mul_(2).sub_(1);
  tensor.mul_(signs.to(tensor.device()).mul_(epsilon(was) / 2).add_(1).to(tensor.scalar_type()));
}

}  // namespace nereid::replay
