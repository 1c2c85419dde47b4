#include "nereid/replay/worker/compare/error_tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nereid/replay/worker/compare/error_terms.h"
#include "nereid/replay/worker/compare/fused_metrics.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr int kBias = 1023;                      // of a float64's exponent
constexpr double kDeviations = 6;                // of a binomial count
constexpr int64_t kTailPart = int64_t{1} << 22;  // elements that operators look at together
constexpr int64_t kMaxParts = 8;
constexpr int64_t kMaxLocal = int64_t{1} << 22;  // elements of an output that are judged one by one
constexpr double kLocalFactor = 256;             // times what right answers err by at an element
constexpr double kLocalLeast = 4;                // ... and that many times the largest of their errors
constexpr int kPowers = ErrorTail::kPowers;

// The k of the largest 2^-k that is at most `error`; numbers of one and more have 0.
int power_of(double error) {
  return std::max(0, kBias - static_cast<int>(terms::bits_of(error) >> 52 & 0x7FF));
}

ErrorTail at_least(const std::array<int64_t, kPowers>& of_power) {
  ErrorTail tail;
  int64_t sum = 0;
  for (int k = 0; k < kPowers; ++k)
    tail.counts[static_cast<size_t>(k)] = sum += of_power[static_cast<size_t>(k)];
  return tail;
}

ErrorTail by_loops(const ElementRange& s, const at::Tensor& answer, double scale) {
  const auto *own = s.own.const_data_ptr<double>(), *truth = s.truth.const_data_ptr<double>(),
             *values = answer.const_data_ptr<double>();
  const auto* agreed = s.agreed.defined() ? s.agreed.const_data_ptr<bool>() : nullptr;
  std::array<int64_t, kPowers> of_power{};
  for (int64_t i = 0; i < s.truth.numel(); ++i) {
    const bool finite = terms::is_finite(own[i]) && terms::absolute(truth[i]) <= s.largest &&
                        terms::is_finite(values[i]) && (agreed == nullptr || agreed[i]);
    const int power = finite ? power_of(terms::in_scale(values[i] - truth[i], truth[i], scale)) : kPowers;
    if (power < kPowers) ++of_power[static_cast<size_t>(power)];
  }
  return at_least(of_power);
}

// Calls body(errors in float64, 0 where not finite) for parts of a range; of many parts for a sample.
template <typename F>
void for_each_part(const ElementRange& s, const at::Tensor& answer, double scale, F body) {
  const auto parts = (s.truth.numel() + kTailPart - 1) / kTailPart;
  const auto step = kTailPart * ((parts + kMaxParts - 1) / kMaxParts);
  for (int64_t first = 0; first < s.truth.numel(); first += step) {
    const auto size = std::min(kTailPart, s.truth.numel() - first);
    const auto part = [&](const at::Tensor& t) { return t.narrow(0, first, size); };
    const auto truth = part(s.truth).to(c10::kDouble), values = part(answer).to(c10::kDouble);
    auto finite = at::isfinite(part(s.own).to(c10::kDouble)).logical_and_(truth.abs().le(s.largest));
    finite.logical_and_(at::isfinite(values));
    if (s.agreed.defined()) finite.logical_and_(part(s.agreed));
    body(at::where(finite, values.sub(truth).abs_().div_(truth.abs().clamp_min_(scale)), 0.0), first);
  }
}

ErrorTail by_torch(const ElementRange& s, const at::Tensor& answer, double scale) {
  std::array<int64_t, kPowers> of_power{};
  for_each_part(s, answer, scale, [&](const at::Tensor& error, int64_t) {
    const auto exponent = error.view(c10::kLong).bitwise_right_shift(52);
    const auto counts = exponent.neg().add_(kBias).clamp_(0, kPowers).bincount({}, kPowers + 1).to(at::kCPU);
    const auto* numbers = counts.template const_data_ptr<int64_t>();
    for (int k = 0; k < kPowers; ++k) of_power[static_cast<size_t>(k)] += numbers[k];
  });
  return at_least(of_power);
}

}  // namespace

void ErrorTail::add(const ErrorTail& other) {
  for (size_t k = 0; k < counts.size(); ++k) counts[k] += other.counts[k];
}

void ErrorTail::widen(const ErrorTail& other) {
  for (size_t k = 0; k < counts.size(); ++k) counts[k] = std::max(counts[k], other.counts[k]);
}

ErrorTail error_tail(const ElementRange& range, const at::Tensor& answer, double scale) {
  if (const auto* metrics = fused_metrics({range.own, range.truth, answer}))
    return metrics->tail(range, answer, scale, {});
  const bool plain = range.truth.is_cpu() && range.own.scalar_type() == c10::kDouble &&
                     range.truth.scalar_type() == c10::kDouble && answer.scalar_type() == c10::kDouble;
  return plain ? by_loops(range, answer, scale) : by_torch(range, answer, scale);
}

std::optional<TailExcess> excess(const ErrorTail& answer, const ErrorTail& reference, double factor,
                                 double floor) {
  std::optional<TailExcess> worst;
  for (int k = 0; k < kPowers; ++k) {
    // The next power of two above what goes with a reference's error of 2^-k.
    const int above = -static_cast<int>(std::ceil(std::log2(std::ldexp(factor, -k) + floor)));
    if (above < 0) continue;
    const auto expected = static_cast<double>(reference.counts[static_cast<size_t>(k)]);
    // The largest m with m / 2 - z sqrt(m / 4) <= expected.
    const double root = kDeviations / 2 + std::sqrt(kDeviations * kDeviations / 4 + 2 * expected);
    const auto allowed = static_cast<int64_t>(root * root);
    const auto found = answer.counts[static_cast<size_t>(std::min(above, kPowers - 1))];
    if (found <= allowed || (worst && found - allowed <= worst->elements - worst->allowed)) continue;
    worst = {.error = std::ldexp(1.0, -above), .elements = found, .allowed = allowed};
  }
  return worst;
}

void SampleErrors::add(const ElementRange& range, const at::Tensor& answer, double scale, int64_t elements) {
  const auto* metrics = fused_metrics({range.own, range.truth, answer});
  if (metrics != nullptr && elements <= kMaxLocal && range.truth.numel() == elements) {
    largest = at::empty({elements}, range.truth.options().dtype(c10::kFloat));
    return tail.add(metrics->tail(range, answer, scale, largest));
  }
  tail.add(error_tail(range, answer, scale));
  if (elements > kMaxLocal) return;
  for_each_part(range, answer, scale, [&](const at::Tensor& error, int64_t) {
    const auto part = error.to(c10::kFloat);
    largest = largest.defined() ? at::cat({largest, part}) : part;
  });
}

void SampleErrors::widen(const SampleErrors& other) {
  tail.widen(other.tail);
  if (other.largest.defined())
    largest = largest.defined() ? at::maximum(largest, other.largest) : other.largest;
}

std::optional<LocalExcess> local_excess(const at::Tensor& errors, const at::Tensor& samples, double least,
                                        double factor, double floor) {
  constexpr int64_t kSample = 4096;
  const auto places = errors.gt(least).nonzero().reshape({-1});
  if (places.numel() == 0) return std::nullopt;
  const auto stride = std::max<int64_t>(1, samples.numel() / kSample) | 1;
  const auto usual = samples.slice(0, 0, std::nullopt, stride).median();
  const auto error = errors.index_select(0, places);
  const auto limit = at::maximum(samples.index_select(0, places), usual).mul_(factor).add_(floor);
  const auto beyond = error.gt(limit);
  LocalExcess found{.elements = beyond.sum().item().toLong()};
  if (found.elements == 0) return std::nullopt;
  const auto worst = at::where(beyond, error.div(limit), 0.0).argmax();
  found.error = error.index_select(0, worst).item().toDouble();
  found.limit = limit.index_select(0, worst).item().toDouble();
  return found;
}

void WideElements::add(const ElementRange& range) {
  got_.add(range, range.got, scale_, elements_);
  own_.add(range, range.own, scale_, elements_);
}

std::optional<SystematicError> WideElements::check(const SampleErrors& samples, const Limits& limits) const {
  auto right = own_;
  right.widen(samples);
  if (const auto found = excess(got_.tail, right.tail, limits.factor, limits.floor))
    return SystematicError{
        fmt::format("{} of {} elements are off by more than {:.3g} of the output's scale, where rounding "
                    "leaves {}",
                    found->elements, elements_, found->error, found->allowed),
        static_cast<double>(found->elements), static_cast<double>(found->allowed)};
  if (!got_.largest.defined()) return std::nullopt;
  const double least = kLocalLeast * limits.own_error + limits.floor;
  const auto found = local_excess(got_.largest, right.largest, least, kLocalFactor, limits.floor);
  if (!found) return std::nullopt;
  return SystematicError{
      fmt::format("{} of {} elements are off by more than rounding leaves there, one by {:.3g} where that is "
                  "{:.3g}",
                  found->elements, elements_, found->error, found->limit),
      found->error, found->limit};
}

}  // namespace nereid::replay
