// What errors of outputs are measured in, and what is forgiven of them in any case.
#include <algorithm>
#include <cmath>

#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay {

double floor_ulps(trace::DType type) {
  switch (type) {
    case trace::DType::kF32:
    case trace::DType::kC64:
      return 16;
    case trace::DType::kF64:
    case trace::DType::kC128:
      return 1024;  // float64 cannot measure its own error
    default:
      return 1;
  }
}

double norm_floor_ulps(trace::DType type) {
  switch (type) {
    case trace::DType::kF32:
    case trace::DType::kC64:
      return 4;
    case trace::DType::kF64:
    case trace::DType::kC128:
      return 256;
    default:
      return 0.25;
  }
}

const ReferenceErrors* known_errors(const OutputTensors& tensors) {
  const auto* known = tensors.reference_errors.get();
  return known && known->own_output.is_same(tensors.own) && known->truth.is_same(tensors.truth) &&
                 known->agreed.is_same(tensors.agreed)
             ? known
             : nullptr;
}

double rms(const Scale& sum) {
  return sum.count > 0 ? std::sqrt(sum.squared / static_cast<double>(sum.count)) : 0;
}

std::optional<double> saturated_at(const at::Tensor& truth) {
  constexpr int64_t kSample = 4096;
  constexpr double kOneNumber = 1e-6;
  if (!c10::isFloatingType(truth.scalar_type()) || truth.numel() < 2) return std::nullopt;
  const auto all = truth.reshape({-1});
  const auto sample = all.slice(0, 0, std::nullopt, std::max<int64_t>(1, all.numel() / kSample) | 1)
                          .to(at::kCPU, c10::kDouble);
  const double middle = sample.median().item().toDouble();
  if (middle == 0 || !std::isfinite(middle)) return std::nullopt;
  const auto near = sample.sub(middle).abs().le(std::abs(middle) * kOneNumber).sum().item().toLong();
  return 2 * near >= sample.numel() ? std::optional(middle) : std::nullopt;
}

}  // namespace nereid::replay
