#include "nereid/replay/worker/trial/undecided_elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

bool forget(OutputTensors& output, const at::Tensor& at) {
  return mark_undefined(output, output.truth.masked_fill(at, std::numeric_limits<double>::quiet_NaN()));
}

// That errors are measured in.
at::Tensor unit_of(const at::Tensor& truth) { return truth.abs().clamp_min(rms(truth)); }

}  // namespace

bool is_odd(const Comparison& comparison) {
  return std::ranges::any_of(comparison.outputs, [](const OutputComparison& o) {
    return !o.agrees && (std::isinf(o.error) || trace::is_integral(*trace::dtype_from_string(o.dtype)));
  });
}

int64_t forget_overflown(OutputTensors& output, bool numbers_for_nan) {
  if (output.truth.scalar_type() != c10::kDouble || !c10::isFloatingType(output.own.scalar_type())) return 0;
  const auto own = output.own.to(c10::kDouble), got = output.got.to(c10::kDouble);
  const auto same = own.eq(got).logical_or_(own.isnan().logical_and_(got.isnan()));
  auto judged = got.isfinite();
  if (numbers_for_nan) judged.logical_and_(own.isnan().logical_and_(output.truth.isnan()).logical_not_());
  const auto at = judged.logical_or_(own.isfinite()).logical_or_(same).logical_not_();
  const auto count = at.sum().item().toLong();
  if (count > 0) mark_undefined(output, output.truth.masked_fill(at, 0));  // the truth is no number there
  return count;
}

bool forget_poles(OutputTensors& output, const at::Tensor& rounded) {
  const auto& truth = output.truth;
  if (truth.scalar_type() != c10::kDouble || truth.numel() == 0) return false;
  const auto in_range = [&](const at::Tensor& t) {  // a number beyond the dtype's range is an infinity
    const double most = largest_finite(output.dtype);
    return at::where(t.abs().gt(most), t.sign().mul(std::numeric_limits<double>::infinity()), t);
  };
  const auto wanted = in_range(truth), other = in_range(rounded.to(c10::kDouble));
  const auto numbers = wanted.isfinite().logical_and_(other.isfinite());
  const auto same = wanted.eq(other).logical_or_(wanted.isnan().logical_and_(other.isnan()));
  const auto at = numbers.logical_or_(same).logical_not_();
  if (!at.any().item().toBool()) return false;
  const auto nan = at::full_like(truth, std::numeric_limits<double>::quiet_NaN());
  // A mark is another number than the truth.
  return mark_undefined(output, at::where(at, at::where(truth.isnan(), at::zeros_like(truth), nan), truth));
}

bool forget_ill_conditioned(OutputTensors& output, const at::Tensor& moved) {
  constexpr double kMoved = 0x1p-20;
  const auto& truth = output.truth;
  if (truth.scalar_type() != c10::kDouble || truth.numel() == 0) return false;
  return forget(output, moved.sub(truth).abs_().le(unit_of(truth).mul_(kMoved)).logical_not_());
}

bool forget_near_overflow(OutputTensors& output, const at::Tensor& own, const at::Tensor& truth) {
  constexpr double kNoDigits = 0x1p-7;
  if (output.truth.scalar_type() != c10::kDouble || truth.numel() == 0) return false;
  const auto keeps = own.to(c10::kDouble).sub(truth).abs_().le(unit_of(truth).mul_(kNoDigits));
  return forget(output, keeps.logical_not_().logical_and_(output.truth.isfinite()));
}

bool forget_nearly_infinite(OutputTensors& output, const at::Tensor& scaled) {
  if (output.truth.scalar_type() != c10::kDouble) return false;
  const double most = largest_finite(output.dtype);
  return forget(output, scaled.abs().le(most).logical_not_().logical_and_(output.truth.abs().le(most)));
}

bool forget_noise_sensitive(OutputTensors& output, const at::Tensor& moved, double min_moved,
                            bool any_share) {
  constexpr double kFactor = 64;  // as on other distributions
  constexpr double kNoDigits = 0x1p-7;
  const auto& truth = output.truth;
  const auto unit = unit_of(truth);
  const auto error = output.got.to(c10::kDouble).sub(truth).abs();
  const auto lost = moved.gt(unit.mul(kNoDigits));
  auto at = error.le(moved.mul(kFactor)).logical_and_(moved.gt(unit.mul(min_moved))).logical_or_(lost);
  // Which zeros of a row keep noise, and how much against the others', differs between kernels.
  const auto noise = truth.eq(0).logical_and_(moved.gt(0));
  if (noise.logical_and(lost).any().item().toBool()) at.logical_or_(noise);
  if (!any_share && 2 * at.sum().item().toLong() > at.numel()) return false;
  return forget(output, at);
}

}  // namespace nereid::replay
