
#include <cmath>
#include <limits>

#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay::by_operators {
namespace {

struct Standing {
  at::Tensor defined, finite;
};

Standing standing(const ElementRange& s) {
  if (s.agreed.defined()) {
    const auto agreed = at::isfinite(s.own).logical_and(s.truth.abs().le(s.largest)).logical_and(s.agreed);
    return {agreed, agreed};
  }
  // What the truth is in the dtype's range.
  const auto rounded = at::where(s.truth.abs().gt(s.largest), s.truth.mul(kInfinity), s.truth);
  const auto own_finite = at::isfinite(s.own), truth_finite = at::isfinite(rounded);
  const auto same = s.own.eq(rounded).logical_or(at::isnan(s.own).logical_and(at::isnan(rounded)));
  const auto finite = own_finite.logical_and(truth_finite);
  return {finite.logical_or(own_finite.logical_or(truth_finite).logical_not().logical_and(same)), finite};
}

at::Tensor same(const ElementRange& s) {
  return s.got.eq(s.own).logical_or(at::isnan(s.got).logical_and(at::isnan(s.own)));
}

double number(const at::Tensor& tensor) { return tensor.item().toDouble(); }
int64_t count(const at::Tensor& mask) { return mask.sum().item().toLong(); }

// `error` counts where the element is finite; where it is odd, being the same does.
CandidateError judge(const ElementRange& s, const Standing& standing, const at::Tensor& error,
                     const at::Tensor& wrong) {
  CandidateError out;
  const auto odd = at::where(same(s), 0.0, at::full_like(error, kInfinity));
  const auto whole = at::where(at::isnan(error), at::full_like(error, kInfinity), error);
  const auto judged =
      at::where(standing.finite, whole, at::where(standing.defined, odd, at::zeros_like(error)));
  const auto bad = wrong.logical_and(standing.defined);
  const auto [largest, at] = judged.max(0);
  out.largest = number(largest), out.worst = at.item().toLong();
  out.wrong = count(bad);
  if (out.wrong > 0) out.first = bad.to(c10::kByte).argmax().item().toLong();

  const auto off = at::where(standing.finite, s.got.sub(s.truth), 0.0);
  out.squared = number(off.square().sum());
  const auto size = at::where(at::isfinite(off), off.abs(), 0.0);
  out.absolute = number(size.max());
  const auto relative = size.div(s.truth.abs());
  out.relative = number(at::where(at::isfinite(relative), relative, 0.0).max());
  return out;
}

}  // namespace

Scale scale_of(const ElementRange& s) {
  const auto stands = standing(s);
  return {number(at::where(stands.finite, s.truth.square(), 0.0).sum()), count(stands.finite),
          s.truth.numel() - count(stands.defined)};
}

ReferenceError own_error(const ElementRange& s, const at::Tensor& other, double scale) {
  const auto both = standing(s).finite.logical_and(at::isfinite(other));
  const auto error = at::where(both, other.sub(s.truth), 0.0);
  const auto unit = s.truth.abs().clamp_min(scale);
  return {number(at::where(both, error.abs().div(unit), 0.0).max()), number(error.square().sum())};
}

CandidateError scaled_error(const ElementRange& s, double scale, double limit) {
  const auto stands = standing(s);
  const auto error = s.got.sub(s.truth).abs().div(s.truth.abs().clamp_min(scale));
  // Not within the limit: a NaN is wrong too. What is odd is wrong where it is not the same.
  const auto beyond = error.le(limit).logical_not();
  return judge(s, stands, error, at::where(stands.finite, beyond, same(s).logical_not()));
}

CandidateError plain_error(const ElementRange& s, double rtol, double atol, bool of_got) {
  const auto error = s.got.sub(s.own).abs();
  const auto close = error.le((of_got ? s.got : s.own).abs().mul(rtol).add(atol)).logical_or(same(s));
  return judge(s, standing(s), error, close.logical_not());
}

}  // namespace nereid::replay::by_operators
