#include "nereid/replay/worker/trial/degenerate.h"

#include <algorithm>

#include "nereid/replay/worker/compare/fused_metrics.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr int64_t kQuickSample = 256;  // elements that settle most questions about a whole tensor

}  // namespace

bool is_constant(const at::Tensor& tensor) {
  const auto flat = tensor.reshape({-1});
  if (flat.numel() < 2) return false;
  if (const auto* metrics = fused_metrics({flat})) {
    const auto whole = flat.contiguous();
    const auto one = whole.narrow(0, 0, 1),
               glance = whole.narrow(0, 0, std::min(kQuickSample, whole.numel()));
    return metrics->all_close(glance, one, 0, 0, false) && metrics->all_close(whole, one, 0, 0, false);
  }
  for (int64_t first = 0, size = kQuickSample; first < flat.numel(); first += size, size = kChunk)
    if (!flat.narrow(0, first, std::min(size, flat.numel() - first))
             .eq(flat.narrow(0, 0, 1))
             .all()
             .item()
             .toBool())
      return false;
  return true;
}

bool is_close(const at::Tensor& first, const at::Tensor& second, double scale, double limit) {
  const auto a = (first.is_complex() ? at::view_as_real(first) : first).reshape({-1});
  const auto b = (second.is_complex() ? at::view_as_real(second) : second).reshape({-1});
  scale = std::max(scale, 1e-300);
  const auto close = [&](const at::Tensor& x, const at::Tensor& y) {
    return at::isclose(x.to(c10::kDouble), y.to(c10::kDouble), limit, limit * scale, true)
        .all()
        .item()
        .toBool();
  };
  const auto glance = std::min(a.numel(), kQuickSample);
  if (const auto* metrics = fused_metrics({a, b})) {
    const bool one = b.numel() > 1 && b.stride(0) == 0;  // again and again
    const auto x = a.contiguous(), y = one ? b.narrow(0, 0, 1) : b.contiguous();
    const auto equal = [&](const at::Tensor& p, const at::Tensor& q) {
      return metrics->all_close(p, q, limit, limit * scale, true);
    };
    return equal(x.narrow(0, 0, glance), one ? y : y.narrow(0, 0, glance)) && equal(x, y);
  }
  return close(a.narrow(0, 0, glance), b.narrow(0, 0, glance)) && close(a, b);
}

double finite_share(const std::vector<OutputTensors>& outputs) {
  int64_t finite = 0, elements = 0;
  for (const auto& output : outputs) {
    if (!c10::isFloatingType(output.own.scalar_type()) || output.own.numel() == 0) continue;
    const auto* known = known_errors(output);
    finite += known && known->own_finite ? *known->own_finite : scale_of(output.own).count;
    elements += output.own.numel();
  }
  return elements == 0 ? 1 : static_cast<double>(finite) / static_cast<double>(elements);
}

}  // namespace nereid::replay
