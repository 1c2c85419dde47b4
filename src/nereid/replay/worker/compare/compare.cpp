#include "nereid/replay/worker/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/replay/worker/compare/fused_metrics.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr double kAgree = 1e-6;          // of truths under different huge numbers
constexpr int64_t kMaxRanges = 8;        // that statistics look at on a GPU
constexpr double kUsualFactor = 4;       // Tolerance::factor's default
constexpr double kFewCoarse = 1e-4;      // relative: a quarter of a bfloat16 ulp in 16 rounded terms
constexpr int64_t kFewElements = 64;     // of an output: too few for statistics
constexpr double kWiderInFloat32 = 2;    // limits of statistics: sums are taken in orders of their own
constexpr double kBiasOfRepeated = 1;    // ulps
constexpr double kFlipped = 36;          // elements that TF32 may move over a bound in a slice, by chance
constexpr double kTf32 = 0x1p-10;        // epsilon
constexpr double kSaturated = 1e-3;      // relative: of elements that show no digits
constexpr double kCoarse = 0x1p-20;      // an epsilon of 16 bits or less is above it
constexpr double kRoundedOnTheWay = 64;  // ulps of float32: a reference that errs less has no coarse error

at::Tensor flat(const at::Tensor& tensor) {
  auto t = tensor.resolve_conj().resolve_neg();
  if (t.is_complex()) t = at::view_as_real(t);
  // As bytes: of a bool that holds 2, sums, masks and comparisons make different things.
  if (t.scalar_type() == c10::kBool) t = t.view(c10::kByte);
  return t.reshape({-1});
}

at::Tensor as_double(const at::Tensor& tensor) { return tensor.to(c10::kDouble).contiguous(); }

double number(const at::Tensor& tensor, int64_t index) {
  return tensor.narrow(0, index, 1).to(c10::kDouble).item().toDouble();
}

std::vector<int64_t> position(int64_t index, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; index /= std::max<int64_t>(sizes[d], 1))
    out[d] = index % std::max<int64_t>(sizes[d], 1);
  return out;
}

// One output on its way to a verdict: flat tensors, walked in chunks.
class Comparer {
 public:
  Comparer(const OutputTensors& tensors, const Tolerance& tolerance, int64_t chunk)
      : tensors_(tensors),
        tolerance_(tolerance),
        chunk_(chunk),
        got_(flat(tensors.got)),
        own_(flat(tensors.own)),
        truth_(flat(tolerance.kernelbench ? tensors.own : tensors.truth)),
        agreed_(tensors.agreed),
        fused_(fused_metrics({got_, own_, truth_})),
        largest_(largest_finite(tensors.dtype)) {
    out_.dtype = trace::to_string(tensors.dtype);
    out_.sizes = tensors.own.sizes().vec();
    out_.elements = tensors.own.numel();
  }

  struct Nearby {
    ReferenceError error;
    SampleErrors errors;
  };
  Nearby nearby(const at::Tensor& other, std::optional<ErrorStatistics::Sample> kind) {
    Nearby nearby;
    if (out_.elements == 0) return nearby;
    if (trace::is_integral(tensors_.dtype)) {
      nearby.error.largest = share_of_others(flat(other));
      return nearby;
    }
    const double unit = reference_errors().unit;
    const auto near = flat(other);
    auto* statistics = statistics_with_own(unit);
    auto sums = statistics ? statistics->zeros() : ErrorStatistics::Sums();
    for_each_range([&](const ElementRange& range, int64_t first) {
      const auto part = part_of(near, first, range.own.numel());
      nearby.error.add(own_error(range, part, unit));
      if (tensors_.other_inputs) nearby.errors.add(range, part, unit, out_.elements);
      if (statistics && is_sampled(first)) statistics->add_error(sums, range, part, first);
    });
    if (statistics) statistics->add_sample(sums, kind.value_or(usual_sample()));
    return nearby;
  }

  OutputComparison run() {
    if (out_.elements == 0) return out_;
    if (tolerance_.kernelbench)
      plain();
    else if (trace::is_integral(tensors_.dtype))
      integers();
    else if (tolerance_.fixed())
      plain();
    else
      scaled();
    finish();
    return out_;
  }

 private:
  at::Tensor part_of(const at::Tensor& tensor, int64_t first, int64_t size) const {
    if (fused_ && FusedMetrics::reads(tensor.scalar_type())) return tensor.contiguous();
    return as_double(tensor.narrow(0, first, size));
  }

  // Calls body(range, position of its first element). `with_got`: it looks at the candidate's numbers, too.
  template <typename F>
  void for_each_range(F body, bool with_got = true) {
    const auto chunk = fused_ ? std::max<int64_t>(own_.numel(), 1) : chunk_;
    for (int64_t first = 0; first < own_.numel(); first += chunk) {
      const auto size = std::min(chunk, own_.numel() - first);
      const auto part = [&](const at::Tensor& tensor) { return part_of(tensor, first, size); };
      const auto own = part(own_);
      body({with_got ? part(got_) : own, own, part(truth_),
            agreed_.defined() ? agreed_.narrow(0, first, size) : at::Tensor(), largest_},
           first);
    }
  }

  // On a GPU without fused kernels, statistics take a sample of the ranges.
  bool is_sampled(int64_t first) const {
    if (fused_ || truth_.is_cpu()) return true;
    const auto chunks = (truth_.numel() + chunk_ - 1) / chunk_;
    return first / chunk_ % ((chunks + kMaxRanges - 1) / kMaxRanges) == 0;
  }

  ErrorStatistics::Sample usual_sample() const {
    return tensors_.tf32 ? ErrorStatistics::Sample::kShift : ErrorStatistics::Sample::kNoise;
  }

  // Null where the truth is no better than the reference's own. `got`: gets the sums of the candidate's error
  // where the same passes give them.
  ErrorStatistics* statistics_with_own(double scale, std::optional<ErrorStatistics::Sums>* got = nullptr) {
    if (!tensors_.upcast) return nullptr;
    if (tensors_.statistics) return tensors_.statistics.get();
    auto sizes = tensors_.own.sizes().vec();
    if (tensors_.own.is_complex()) sizes.push_back(2);
    auto made = std::make_shared<ErrorStatistics>(std::move(sizes), tensors_.dtype, scale);
    auto own = made->zeros(), of_got = made->zeros();
    for_each_range(
        [&](const ElementRange& range, int64_t first) {
          if (!is_sampled(first)) return;
          if (got != nullptr && made->add_all(range, own, of_got)) {
            *got = std::move(of_got);
            return;
          }
          made->add_truth(range, first);
          made->add_error(own, range, range.own, first);
        },
        got != nullptr);
    made->add_sample(own, usual_sample());
    tensors_.statistics = std::move(made);
    return tensors_.statistics.get();
  }

  // The share of elements at which another float64 reference gives other numbers.
  double share_of_others(const at::Tensor& other) const {
    int64_t others = 0;
    for (int64_t first = 0; first < truth_.numel(); first += chunk_) {
      const auto size = std::min(chunk_, truth_.numel() - first);
      auto differs = other.narrow(0, first, size).ne(truth_.narrow(0, first, size));
      if (agreed_.defined()) differs = differs.logical_and(agreed_.narrow(0, first, size));
      others += differs.sum().item().toLong();
    }
    return static_cast<double>(others) / static_cast<double>(truth_.numel());
  }

  void integers() {
    const auto misplaced =
        tensors_.places ? tensors_.places->wrong(got_, truth_, agreed_.defined()) : at::Tensor();
    for (int64_t first = 0; first < own_.numel(); first += chunk_) {
      const auto size = std::min(chunk_, own_.numel() - first);
      const auto got = got_.narrow(0, first, size), own = own_.narrow(0, first, size),
                 truth = truth_.narrow(0, first, size);
      auto wrong = got.ne(own).logical_and(got.ne(truth));
      if (misplaced.defined()) wrong = wrong.logical_and(misplaced.narrow(0, first, size));
      if (agreed_.defined()) wrong = wrong.logical_and(agreed_.narrow(0, first, size));
      CandidateError part{.wrong = wrong.sum().item().toLong()};
      if (part.wrong > 0) {
        const auto error = at::where(wrong, as_double(got).sub(as_double(own)).abs(), 0.0);
        const auto [largest, at] = error.max(0);
        part.first = wrong.to(c10::kByte).argmax().item().toLong();
        part.worst = at.item().toLong();
        part.largest = part.absolute = largest.item().toDouble();
      }
      sum_.add(part, first);
    }
    take_sum();
    out_.error = static_cast<double>(out_.wrong) / static_cast<double>(out_.elements);
    if (tolerance_.fixed() || tensors_.places) return;
    out_.own_error = std::max(share_of_others(own_), tensors_.nearby.largest);
    out_.error_limit = tolerance_.factor * out_.own_error;
  }

  void plain() {
    const double own = tolerance_.kernelbench ? kernelbench_tolerance(tensors_.dtype) : 0;
    const double rtol = tolerance_.rtol.value_or(own), atol = tolerance_.atol.value_or(own);
    for_each_range([&](const ElementRange& range, int64_t first) {
      sum_.add(plain_error(range, rtol, atol, tolerance_.kernelbench), first);
      out_.undefined += scale_of(range).undefined;
    });
    take_sum();
    out_.error_limit = atol;
  }

  ReferenceErrors& reference_errors() {
    auto& known = tensors_.reference_errors;
    if (known_errors(tensors_) != nullptr) return *known;
    known = std::make_shared<ReferenceErrors>(
        ReferenceErrors{.own_output = tensors_.own, .truth = tensors_.truth, .agreed = tensors_.agreed});
    for_each_range(
        [&](const ElementRange& range, int64_t) {
          if (!fused_) return known->scale.add(scale_of(range));
          const auto whole = fused_->scale_statistics(range);
          known->scale = whole.scale, known->whole_truth = whole.truth, known->own_finite = whole.own_finite;
        },
        false);
    const auto& [squared, count, undefined] = known->scale;
    known->unit = count > 0 ? std::sqrt(squared / static_cast<double>(count)) : 0;
    // Squares of float64 numbers may be beyond float64: elements are then compared each by its own size.
    if (known->unit == 0 || !std::isfinite(known->unit)) known->unit = tensors_.usual_scale;
    if (known->unit == 0) known->unit = 1;
    return *known;
  }

  ReferenceError references_own_error() {
    auto& known = reference_errors();
    if (!known.own) {
      known.own.emplace();
      for_each_range([&](const ElementRange& s, int64_t) { known.own->add(own_error(s, s.own, known.unit)); },
                     false);
    }
    return *known.own;
  }

  // By kernels of our own, the reference's error and the candidate's in one pass.
  void measure_both() {
    auto& known = reference_errors();
    if (!fused_ || known.own) return;
    for_each_range([&](const ElementRange& s, int64_t) {
      const auto both = fused_->error_pair(s, known.unit);
      known.own = both.own, got_error_ = both.got;
    });
  }
  // The candidate's. Where none is above the limit, no element is wrong.
  CandidateError got_error(const ElementRange& range, double unit, double limit) const {
    const bool none = got_error_ && std::isfinite(limit) && got_error_->largest <= limit;
    return none ? *got_error_ : scaled_error(range, unit, limit);
  }

  void scaled() {
    const auto truth = reference_errors().scale;
    const double scale = reference_errors().unit;
    out_.undefined = truth.undefined;
    const bool has_norm = std::isfinite(truth.squared);
    const double norm = truth.squared > 0
                            ? std::sqrt(truth.squared)
                            : scale * std::sqrt(std::max(static_cast<double>(truth.count), 1.0));

    measure_both();
    auto own = references_own_error();
    own.widen(tensors_.nearby);
    out_.own_error = own.largest;
    if (has_norm) out_.own_norm_error = std::sqrt(own.squared) / norm;
    const double eps = epsilon(tensors_.dtype);
    // Rounding to 16 bits makes errors of a known size: the reference's own are no luckier than others'.
    // A few elements may be exact by luck, and other distributions are for what goes wrong altogether.
    const bool own_inputs = tolerance_.slack <= 1, many = truth.count > kFewElements;
    const bool rounds = many && tensors_.coarse && tensors_.upcast &&
                        (eps > kCoarse || out_.own_norm_error > kRoundedOnTheWay * eps);
    const bool coarse = own_inputs && rounds;
    const double factor = coarse ? tolerance_.factor / 2 : tolerance_.factor * tolerance_.slack;
    const double norm_factor = coarse ? tolerance_.factor / 2 : factor;
    out_.error_limit = factor * out_.own_error + floor_ulps(tensors_.dtype) * eps;
    // A norm of few elements has little to even out: of one it is that element's error.
    const double norm_floor =
        std::max(norm_floor_ulps(tensors_.dtype),
                 floor_ulps(tensors_.dtype) / std::sqrt(std::max(static_cast<double>(truth.count), 1.0)));
    out_.norm_limit = norm_factor * out_.own_norm_error + norm_floor * eps;
    // Of a loss whose terms are rounded to 16 bits the reference's own error may be small by luck.
    if (!many && tensors_.coarse)
      out_.error_limit += kFewCoarse * tolerance_.slack, out_.norm_limit += kFewCoarse * tolerance_.slack;

    if (tensors_.saturated && !own_inputs) {
      out_.error_limit = std::max(out_.error_limit, kSaturated);
      out_.norm_limit = std::max(out_.norm_limit, kSaturated);
    }

    const double unit = scale;
    const double slack = own_inputs ? 1 : tensors_.saturated ? 0 : tensors_.statistics_slack;
    std::optional<ErrorStatistics::Sums> summed;  // of the candidate's error
    auto* statistics = slack > 0 && many ? statistics_with_own(unit, &summed) : nullptr;
    const bool is_summed = summed.has_value();
    auto got = is_summed ? *std::move(summed) : statistics ? statistics->zeros() : ErrorStatistics::Sums();
    for_each_range([&](const ElementRange& range, int64_t first) {
      sum_.add(got_error(range, unit, out_.error_limit), first);
      if (statistics && !is_summed && is_sampled(first)) statistics->add_error(got, range, range.got, first);
    });
    take_sum();
    if (has_norm) out_.norm_error = std::sqrt(sum_.squared) / norm;
    if (statistics) systematic(*statistics, got, rounds, slack);
    if (!own_inputs && !tensors_.saturated && tensors_.upcast)
      check_wide({own.largest, factor, floor_ulps(tensors_.dtype) * eps});
  }

  // A few elements that cancel give all others a wide limit: of these no more may err by much than do in the
  // reference, and none by far more than right answers do there.
  void check_wide(const WideElements::Limits& limits) {
    if (!out_.systematic.empty() || !(sum_.largest > limits.floor) || !std::isfinite(sum_.largest)) return;
    WideElements wide(reference_errors().unit, out_.elements);
    for_each_range([&](const ElementRange& range, int64_t) { wide.add(range); });
    if (const auto found = wide.check(tensors_.nearby_errors, limits)) note(*found);
  }

  void note(const SystematicError& found) {
    out_.systematic = found.text;
    out_.systematic_error = found.found, out_.systematic_limit = found.limit;
  }

  void systematic(const ErrorStatistics& statistics, const ErrorStatistics::Sums& got, bool coarse,
                  double slack) {
    auto limits = statistics_limits(tensors_.dtype, coarse, tensors_.near_one);
    if (tensors_.tf32) limits.few_elements = kFlipped * kTf32 * kTf32;
    const double wider = tolerance_.factor / kUsualFactor;
    if (tensors_.repeating) {
      limits.bias_ulps = std::max(limits.bias_ulps, kBiasOfRepeated);
      limits.residue = std::max(limits.residue, limits.small_energy * epsilon(tensors_.dtype));
    }
    limits.energy *= wider * wider, limits.energy_ulps *= wider, limits.bias_ulps *= wider;
    limits.small_energy *= wider, limits.small_bias *= wider, limits.few_elements *= wider * wider;
    limits.residue *= tolerance_.factor / kUsualFactor;
    const auto found = statistics.check(got, limits);
    if (!found || found->found <= (coarse ? slack : kWiderInFloat32 * slack) * found->limit) return;
    note(*found);
  }

  void take_sum() {
    out_.wrong = sum_.wrong;
    out_.error = sum_.largest;
    out_.max_absolute_error = sum_.absolute;
    out_.max_relative_error = sum_.relative;
  }

  void finish() {
    const auto sizes =
        tensors_.own.is_complex() ? at::view_as_real(tensors_.own.resolve_conj()).sizes().vec() : out_.sizes;
    const bool norm_exceeded =
        !(out_.norm_error <= out_.norm_limit) && !tolerance_.fixed() && !trace::is_integral(tensors_.dtype);
    const bool rounded =
        trace::is_integral(tensors_.dtype) && !tolerance_.kernelbench && out_.error <= out_.error_limit;
    out_.agrees = rounded || (out_.wrong == 0 && !norm_exceeded && out_.systematic.empty());
    if (out_.agrees) return;
    if (sum_.first >= 0) {
      out_.first_wrong = position(sum_.first, sizes);
      out_.first_got = number(got_, sum_.first);
      out_.first_want = number(own_, sum_.first);
    }
    out_.worst = position(sum_.worst, sizes);
    out_.worst_got = number(got_, sum_.worst);
    out_.worst_want = number(own_, sum_.worst);
    if (trace::is_integral(tensors_.dtype) && !tolerance_.kernelbench)
      out_.reason = fmt::format("{} of {} elements are other numbers, at most {:.0f} allowed", out_.wrong,
                                out_.elements, out_.error_limit * static_cast<double>(out_.elements));
    else if (std::isinf(out_.error))
      out_.reason = fmt::format(
          "{} of {} elements are wrong, some of them not finite where the reference is, or the other way "
          "round",
          out_.wrong, out_.elements);
    else if (out_.wrong > 0)
      out_.reason = fmt::format("{} of {} elements are off by more than {:.3g}{}, the worst by {:.3g}",
                                out_.wrong, out_.elements, out_.error_limit,
                                tolerance_.fixed() ? " and the relative tolerance" : " of the output's scale",
                                out_.error);
    else if (!norm_exceeded)
      out_.reason = fmt::format("its error is more than rounding: {}", out_.systematic);
    else
      out_.reason = fmt::format("the error's norm is {:.3g} of the output's, more than {:.3g}",
                                out_.norm_error, out_.norm_limit);
  }

  const OutputTensors& tensors_;
  const Tolerance& tolerance_;
  const int64_t chunk_;
  at::Tensor got_, own_, truth_;
  at::Tensor agreed_;
  const FusedMetrics* fused_;  // where kernels of our own read the whole tensors
  double largest_;
  std::optional<CandidateError> got_error_;  // where it was measured with the reference's own
  CandidateError sum_;
  OutputComparison out_;
};

}  // namespace

Scale scale_of(const at::Tensor& tensor) {
  const auto t = flat(tensor);
  const bool whole = fused_metrics({t}) != nullptr;
  const auto chunk = whole ? std::max<int64_t>(t.numel(), 1) : kChunk;
  Scale sum;
  for (int64_t first = 0; first < t.numel(); first += chunk) {
    const auto part =
        whole ? t.contiguous() : as_double(t.narrow(0, first, std::min(chunk, t.numel() - first)));
    sum.add(scale_of(ElementRange{part, part, part, {}, std::numeric_limits<double>::max()}));
  }
  return sum;
}

double rms(const at::Tensor& tensor) { return rms(scale_of(tensor)); }

OutputComparison compare(const OutputTensors& tensors, const Tolerance& tolerance, int64_t chunk) {
  return Comparer(tensors, tolerance, chunk).run();
}

void widen(OutputTensors& tensors, const at::Tensor& near, std::optional<ErrorStatistics::Sample> kind) {
  const auto nearby = Comparer(tensors, {}, kChunk).nearby(near, kind);
  tensors.nearby.widen(nearby.error);
  tensors.nearby_errors.widen(nearby.errors);
}

void keep_agreeing(at::Tensor& agreed, const at::Tensor& truth, const at::Tensor& other) {
  const auto a = flat(truth), b = flat(other);
  // Another tensor each time, over the same bytes: what was found with the last one holds for that one.
  agreed = agreed.defined() ? agreed.view({-1}) : at::ones({a.numel()}, a.options().dtype(c10::kBool));
  if (const auto* metrics = fused_metrics({a, b}))
    return metrics->keep_agreeing(agreed, a.contiguous(), b.contiguous(), kAgree);
  for (int64_t first = 0; first < a.numel(); first += kChunk) {
    const auto size = std::min(kChunk, a.numel() - first);
    const auto x = as_double(a.narrow(0, first, size)), y = as_double(b.narrow(0, first, size));
    const auto same =
        c10::isIntegralType(truth.scalar_type(), true) ? x.eq(y) : y.sub(x).abs().le(x.abs().mul(kAgree));
    agreed.narrow(0, first, size).logical_and_(same);
  }
}

void adopt_nearest(OutputTensors& tensors, const at::Tensor& other) {
  const auto got = tensors.got.to(c10::kDouble);
  const auto distance = [&](const at::Tensor& from) { return got.sub(from.to(c10::kDouble)).abs(); };
  const auto closer = distance(other).lt(distance(tensors.truth));
  if (!closer.any().item().toBool()) return;
  tensors.truth = at::where(closer, other, tensors.truth);
  tensors.own = at::where(closer, other.to(tensors.own.scalar_type()), tensors.own);
  tensors.statistics.reset();
}

bool mark_undefined(OutputTensors& tensors, const at::Tensor& marked) {
  const auto all_truth = flat(tensors.truth), all_marked = flat(marked);
  auto own = flat(tensors.own), truth = all_truth;
  const bool integral = trace::is_integral(tensors.dtype);
  bool any = false;
  for (int64_t first = 0; first < truth.numel(); first += kChunk) {
    const auto size = std::min(kChunk, truth.numel() - first);
    const auto x = all_truth.narrow(0, first, size), y = all_marked.narrow(0, first, size);
    const auto other = y.ne(x).logical_and(y.isnan().logical_and(x.isnan()).logical_not());
    if (!other.any().item().toBool()) continue;
    if (!any && integral) {
      // Another tensor: what was found with the last one holds for that one.
      tensors.agreed = tensors.agreed.defined()
                           ? tensors.agreed.view({-1}).clone()
                           : at::ones({truth.numel()}, truth.options().dtype(c10::kBool));
    } else if (!any) {
      own = own.clone(), truth = truth.clone();
    }
    any = true;
    if (integral) {
      tensors.agreed.narrow(0, first, size).logical_and_(other.logical_not());
      continue;
    }
    own.narrow(0, first, size).masked_fill_(other, std::numeric_limits<double>::quiet_NaN());
    truth.narrow(0, first, size).masked_fill_(other, 0);
  }
  if (any && !integral)
    tensors.own = own.view(tensors.own.sizes()), tensors.truth = truth.view(tensors.truth.sizes());
  return any;
}

}  // namespace nereid::replay
