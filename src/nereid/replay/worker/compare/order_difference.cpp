#include "nereid/replay/worker/compare/order_difference.h"

#include <fmt/format.h>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

double rounding_of(at::ScalarType type) {
  if (type == at::kDouble) return 0x1p-32;
  if (type == at::kFloat) return 0x1p-12;
  if (type == at::kHalf || type == at::kBFloat16) return 0x1p-5;
  return 0x1p-2;
}

std::string in_words(const at::Tensor& a, const at::Tensor& b, int64_t at) {
  const auto text = [&](const at::Tensor& t) {
    return fmt::format("{:.9g}", t.flatten()[at].to(at::kDouble).item<double>());
  };
  return fmt::format("element {} is {} and {}", at, text(a), text(b));
}

}  // namespace

std::optional<std::string> order_difference(const at::Tensor& ascending, const at::Tensor& shuffled) {
  auto a = ascending.resolve_conj().resolve_neg().detach().contiguous();
  auto b = shuffled.resolve_conj().resolve_neg().detach().contiguous();
  if (a.numel() == 0 || same_bits(a, b)) return std::nullopt;
  if (a.is_complex()) a = at::view_as_real(a), b = at::view_as_real(b);
  if (!a.is_floating_point()) {
    const auto wrong = a.ne(b).flatten();
    if (!wrong.any().item<bool>()) return std::nullopt;
    return in_words(a, b, wrong.to(at::kByte).argmax().item<int64_t>());
  }
  const double bound = rounding_of(a.scalar_type());
  const auto x = a.to(at::kDouble).flatten(), y = b.to(at::kDouble).flatten();
  const auto finite = x.isfinite().logical_and(y.isfinite());
  // Of what is not finite, whether it is the same.
  const auto same = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  const auto other = finite.logical_or(same).logical_not();
  if (other.any().item<bool>()) return in_words(a, b, other.to(at::kByte).argmax().item<int64_t>());
  const auto zero = at::zeros_like(x);
  const double scale = at::where(finite, x.abs(), zero).max().item<double>();
  const auto error = at::where(finite, (x - y).abs(), zero);
  const auto worst = error.argmax().item<int64_t>();
  if (error[worst].item<double>() <= bound * scale) return std::nullopt;
  return in_words(a, b, worst);
}

}  // namespace nereid::replay
