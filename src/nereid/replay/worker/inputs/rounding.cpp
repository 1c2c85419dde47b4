#include "nereid/replay/worker/inputs/rounding.h"

#include <cmath>
#include <limits>
#include <utility>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator, double times) {
  if (!c10::isFloatingType(tensor.scalar_type()) || c10::elementSize(tensor.scalar_type()) < 2) return;
  generator = generator_on(tensor, generator);
  // A float64 cannot hold half an ulp more of itself.
  const double moved = times * (was == trace::DType::kF64 ? epsilon(was) : epsilon(was) / 2);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    part.mul_(up_or_down(part, generator).mul_(moved).add_(1).to(part.scalar_type()));
  });
}

void round_by_chance(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (tensor.scalar_type() != c10::kDouble) return;
  const auto type = scalar_type(was);
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(type).to(c10::kDouble);
    const auto kept = rounded.eq(part).logical_or(rounded.isfinite().logical_not());
    const auto moved = up_or_down(part, generator).mul_(epsilon(was) / 2).add_(1).mul_(part);
    part.copy_(at::where(kept, part, moved.to(type).to(c10::kDouble)));
  });
}

void move_exponents(at::Tensor made, const at::Tensor& numbers, bool logarithm, trace::DType was,
                    at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || made.sizes() != numbers.sizes()) return;
  generator = generator_on(made, generator);
  const auto moved = up_or_down(made, generator).mul_(epsilon(was) / 2).mul_(numbers.nan_to_num(0, 0, 0));
  logarithm ? made.add_(moved) : made.mul_(moved.exp_());
}

void move_up_or_down(at::Tensor made, const at::Tensor& by, at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || (by.dim() > 0 && made.sizes() != by.sizes())) return;
  generator = generator_on(made, generator);
  made.add_(up_or_down(made, generator).mul_(by.nan_to_num(0, 0, 0)));
}

void move_sums(at::Tensor made, double terms, trace::DType was, at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || made.numel() == 0) return;
  generator = generator_on(made, generator);
  const auto squared = made.nan_to_num(0, 0, 0).square_();
  const auto size = (made.dim() > 1 ? squared.mean(-1, true) : squared.mean()).sqrt();
  made.add_(up_or_down(made, generator).mul_(epsilon(was) / 2 * std::sqrt(terms)).mul_(size));
}

void flush_small_squares(at::Tensor made, trace::DType was) {
  if (made.scalar_type() != c10::kDouble) return;
  const double least =
      was == trace::DType::kF64 ? 0x1p-501 : 0x1p-53;  // 2^10 times the root of the least normal
  made.masked_fill_(made.abs().lt(least), 0);
}

void mark_overflow(at::Tensor tensor, trace::DType was) {
  if (tensor.scalar_type() != c10::kDouble) return;
  constexpr double kNearly = 0x1p-6;
  const double most = largest_finite(was);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto size = part.abs();
    part.masked_fill_(size.gt(most * (1 - kNearly)).logical_and_(size.lt(most * (1 + kNearly))),
                      std::numeric_limits<double>::quiet_NaN());
  });
}

namespace {

void add_noise(at::Tensor tensor, trace::DType was, at::Generator generator, bool to_exact) {
  if (tensor.scalar_type() != c10::kDouble) return;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(scalar_type(was)).to(c10::kDouble);
    const auto exact = rounded.eq(part);
    const auto kept = (to_exact ? exact.logical_not() : exact).logical_or(rounded.isfinite().logical_not());
    const auto power = part.contiguous().view(c10::kLong).bitwise_and(0x7FF0000000000000).view(c10::kDouble);
    const auto noise = to_exact ? up_or_down(part, generator).mul_(0.5)
                                : at::rand(part.sizes(), generator, options_of(part, c10::kDouble)).sub_(0.5);
    part.add_(at::where(kept, 0.0, noise.mul_(epsilon(was)).mul_(power)));
  });
}

}  // namespace

void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator) {
  add_noise(std::move(tensor), was, std::move(generator), false);
}

void add_noise_to_exact(at::Tensor tensor, trace::DType was, at::Generator generator) {
  add_noise(std::move(tensor), was, std::move(generator), true);
}

}  // namespace nereid::replay
