#include "nereid/replay/worker/compare/error_statistics.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "nereid/replay/worker/compare/error_terms.h"
#include "nereid/replay/worker/compare/fused_metrics.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr int64_t kMaxSlices = 4096;  // of a dimension: more are put together
constexpr int64_t kRuns = 1024;       // of adjacent elements
constexpr int64_t kShortestRun = 64;
constexpr int64_t kExponents = kernels::kExponents;  // of each sign: scale * 2^-48 to scale * 2^15
constexpr int64_t kExponentsAbove = kernels::kExponentsAbove;
constexpr int64_t kGap = 12;         // empty exponents between values that have scales of their own
constexpr double kDigits = 0x1p-45;  // of the output's scale: what is smaller may be all that float64 leaves
constexpr double kCancelled = 4096;  // times the reference's energy, of values with a scale of their own
constexpr double kFewest = 8;        // elements of a slice that is looked at
constexpr int64_t kBuffer = 512;
constexpr int64_t kOwnTables = int64_t{1} << 18;  // elements from which threads have sums of their own
// Of all tests on one answer together; P(|sum e| > z sqrt(sum e^2)) <= 2 exp(-z^2 / 2) for errors whose signs
// are independent and equally likely.
constexpr double kFalseAlarm = 1e-6;
// A slice's mean may be that many times what the samples' root mean square is, by their number.
double sample_factor(int samples) { return samples >= 5 ? 8 : samples >= 2 ? 6 : 2.5; }
constexpr double kFamilyFactor = 7;          // ... and that many times what is usual among a family's slices
constexpr double kFamilyFactorShifted = 10;  // ... where one sample alone says what that is

double smallest_ulp(trace::DType type) {
  switch (type) {
    case trace::DType::kF16:
    case trace::DType::kC32:
      return 0x1p-24;
    case trace::DType::kBF16:
      return 0x1p-133;
    case trace::DType::kF32:
    case trace::DType::kC64:
      return 0x1p-149;
    case trace::DType::kF8E4M3FN:
      return 0x1p-9;
    case trace::DType::kF8E5M2:
      return 0x1p-16;
    default:
      return 0x1p-1000;
  }
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_to(TruthSums& into, const TruthSums& from) {
  into.count += from.count, into.t += from.t, into.t2 += from.t2, into.ulp2 += from.ulp2;
}
void add_to(ErrorSums& into, const ErrorSums& from) {
  into.e += from.e, into.e2 += from.e2, into.et += from.et;
  into.e2t += from.e2t, into.e2t2 += from.e2t2;
}

// What is summed of some adjacent elements, each quantity by itself: nothing is summed of those that are not
// finite.
struct Terms {
  std::array<double, kBuffer> truth, error, ulp, counts;
};

struct Pointers {
  const double *own, *truth;
  const bool* agreed;
  double largest;
  explicit Pointers(const ElementRange& s)
      : own(s.own.const_data_ptr<double>()),
        truth(s.truth.const_data_ptr<double>()),
        agreed(s.agreed.defined() ? s.agreed.const_data_ptr<bool>() : nullptr),
        largest(s.largest) {}
  bool finite(int64_t i) const {
    return std::abs(own[i]) < kInfinity && std::abs(truth[i]) <= largest && (agreed == nullptr || agreed[i]);
  }
};

TruthSums term(const Terms& x, int64_t j, const TruthSums&) {
  const double t = x.truth[j];
  return {x.counts[j], t, t * t, x.ulp[j] * x.ulp[j]};
}
ErrorSums term(const Terms& x, int64_t j, const ErrorSums&) {
  const double e = x.error[j], t = x.truth[j], et = e * t;
  return {e, e * e, et, e * et, et * et};
}

double slope_of(const ErrorSums& sums, const TruthSums& truth) {
  return sums.et - truth.t / truth.count * sums.e;
}

}  // namespace

StatisticsLimits statistics_limits(trace::DType type, bool coarse, bool near_one) {
  // tanh.approx errs by up to 2^-11 of one, always to the same side at worst: of fp16 that is half an ulp.
  if (coarse && near_one && epsilon(type) == 0x1p-10)
    return {.bias_ulps = 0.5, .small_energy = 1.5, .small_bias = 1.5};
  // Of bf16 it is less, but many ulps of an element that is small next to what tanh is multiplied with. Over
  // a slice the error's sign changes: half of it is allowed to their mean.
  if (coarse && near_one && epsilon(type) == 0x1p-7) return {.small_bias = 1.0 / 32};
  if (coarse && epsilon(type) > 0x1p-20) return {};
  // Coarse on the way alone: what the reference's own errors are decides.
  if (coarse)
    return {
        .energy_ulps = 8, .bias_ulps = 8, .small_energy = 16, .small_bias = 16, .residue = 4 * epsilon(type)};
  const double ulps = epsilon(type) > 0x1p-40 ? 16 : 1024;
  return {.energy = 16,
          .energy_ulps = 2 * ulps,
          .bias_ulps = 2 * ulps,
          .small_energy = ulps,
          .small_bias = ulps,
          .residue = ulps / 4 * epsilon(type)};
}

ErrorStatistics::ErrorStatistics(std::vector<int64_t> sizes, trace::DType type, double scale,
                                 bool by_operators)
    : sizes_(std::move(sizes)), type_(type), scale_(scale), by_operators_(by_operators) {
  for (const auto size : sizes_) elements_ *= size;
  add(Family::Kind::kWhole, -1, 1, 1, 1);
  int64_t inner = 1;
  for (int d = static_cast<int>(sizes_.size()) - 1; d >= 0; --d) {
    const auto size = sizes_[static_cast<size_t>(d)];
    if (size > 1 && row_ == 1) row_ = size;
    const int64_t others = size > 0 ? elements_ / size : 0;
    if (size > 1 && static_cast<double>(others) >= kFewest)
      add(Family::Kind::kDimension, d, inner, size, std::min(size, kMaxSlices));
    inner *= size;
  }
  if (elements_ >= 2 * kShortestRun) {
    const auto run = std::max(kShortestRun, (elements_ + kRuns - 1) / kRuns);
    add(Family::Kind::kRun, -1, run, elements_, (elements_ + run - 1) / run);
    families_.back().size = families_.back().groups, families_.back().per = 1;
  }
  add(Family::Kind::kValues, -1, 1, 1, 2 * kExponents);
  const auto& last = families_.back();
  truth_.resize(static_cast<size_t>(last.first + last.groups));
  samples_.resize(truth_.size());
}

void ErrorStatistics::add(Family::Kind kind, int dimension, int64_t inner, int64_t size, int64_t groups) {
  Family family{kind, dimension, inner, size, (size + groups - 1) / groups, 0, groups};
  if (!families_.empty()) family.first = families_.back().first + families_.back().groups;
  families_.push_back(family);
}

int64_t ErrorStatistics::value_group(double truth) const {
  return terms::exponent_group(truth, scale_, kExponents, kExponentsAbove);
}

// Calls row(begin, end) -> Terms for pieces of at most kBuffer elements of one row each, and adds them up.
template <typename Sum, typename Row>
void ErrorStatistics::walk_part(std::vector<Sum>& into, int64_t begin, int64_t end, int64_t first,
                                Row row) const {
  Terms terms;
  for (int64_t i = begin; i < end;) {
    const int64_t place = first + i, last = std::min({end, i + kBuffer, i + row_ - place % row_});
    const auto length = last - i;
    row(terms, i, length);
    Sum sum;
    for (int64_t j = 0; j < length; ++j) add_to(sum, term(terms, j, Sum()));
    for (const auto& f : families_) {
      auto* groups = into.data() + f.first;
      if (f.kind == Family::Kind::kValues) {
        for (int64_t j = 0; j < length; ++j)
          add_to(groups[value_group(terms.truth[j])], term(terms, j, Sum()));
      } else if (f.kind == Family::Kind::kDimension && f.inner == 1 && f.size == row_) {
        const auto column = place % row_;
        if (f.per == 1)
          for (int64_t j = 0; j < length; ++j) add_to(groups[column + j], term(terms, j, Sum()));
        else
          for (int64_t j = 0; j < length; ++j) add_to(groups[(column + j) / f.per], term(terms, j, Sum()));
      } else if (f.kind == Family::Kind::kRun && place / f.inner != (place + length - 1) / f.inner) {
        for (int64_t j = 0; j < length; ++j) add_to(groups[(place + j) / f.inner], term(terms, j, Sum()));
      } else {
        add_to(groups[place / f.inner % f.size / f.per], sum);
      }
    }
    i = last;
  }
}

template <typename Sum, typename Row>
void ErrorStatistics::walk(std::vector<Sum>& into, const ElementRange& range, int64_t first, Row row) const {
  const auto count = range.truth.numel();
  if (count < kOwnTables || at::get_num_threads() == 1) return walk_part(into, 0, count, first, row);
  const int64_t parts = at::get_num_threads(), size = (count + parts - 1) / parts;
  std::vector<std::vector<Sum>> tables(static_cast<size_t>(parts), std::vector<Sum>(into.size()));
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (auto p = begin; p < end; ++p)
      walk_part(tables[static_cast<size_t>(p)], std::min(count, p * size), std::min(count, (p + 1) * size),
                first, row);
  });
  for (const auto& table : tables)
    for (size_t g = 0; g < into.size(); ++g) add_to(into[g], table[g]);
}

template <typename Body>
bool ErrorStatistics::with_kernels(const ElementRange& range, const at::Tensor& answer, int64_t first,
                                   Body body) const {
  const auto* metrics = by_operators_ ? nullptr : fused_metrics({range.own, range.truth, answer});
  if (metrics == nullptr || first != 0 || range.truth.numel() != elements_) return false;
  std::vector<FusedMetrics::Family> families;
  for (const auto& f : families_)
    families.push_back({f.inner, f.size, f.per, f.groups, f.kind == Family::Kind::kValues});
  body(*metrics, families, FusedMetrics::Ulps{epsilon(type_), smallest_ulp(type_)});
  return true;
}

namespace {
void add_groups(std::vector<TruthSums>& into, const FusedMetrics::GroupSums& sums) {
  for (size_t g = 0; g < sums.size(); ++g) add_to(into[g], {sums[g][0], sums[g][1], sums[g][2], sums[g][3]});
}
void add_groups(std::vector<ErrorSums>& into, const FusedMetrics::GroupSums& sums) {
  for (size_t g = 0; g < sums.size(); ++g)
    add_to(into[g], {sums[g][0], sums[g][1], sums[g][2], sums[g][3], sums[g][4]});
}
}  // namespace

bool ErrorStatistics::add_all(const ElementRange& range, Sums& own, Sums& got) {
  return with_kernels(range, range.got, 0, [&](const auto& metrics, const auto& families, auto ulps) {
    const auto sums = metrics.all_sums(range, families, scale_, ulps);
    add_groups(truth_, sums.truth), add_groups(own, sums.own), add_groups(got, sums.got);
  });
}

void ErrorStatistics::add_truth(const ElementRange& range, int64_t first) {
  if (with_kernels(range, {}, first, [&](const auto& metrics, const auto& families, auto ulps) {
        add_groups(truth_, metrics.group_sums(range, {}, families, scale_, ulps));
      }))
    return;
  if (by_operators_ || !range.truth.is_cpu()) return add_on_device(truth_, range, first);
  const Pointers p(range);
  const double eps = epsilon(type_), smallest = smallest_ulp(type_);
  walk(truth_, range, first, [&](Terms& x, int64_t begin, int64_t length) {
    for (int64_t j = 0; j < length; ++j) {
      const bool finite = p.finite(begin + j);
      x.truth[j] = finite ? p.truth[begin + j] : 0;
      x.ulp[j] = finite ? terms::ulp_at(x.truth[j], eps, smallest) : 0;
      x.counts[j] = finite;
    }
  });
}

void ErrorStatistics::add_error(Sums& sums, const ElementRange& range, const at::Tensor& answer,
                                int64_t first) const {
  if (with_kernels(range, answer, first, [&](const auto& metrics, const auto& families, auto ulps) {
        add_groups(sums, metrics.group_sums(range, answer, families, scale_, ulps));
      }))
    return;
  if (by_operators_ || !range.truth.is_cpu()) return add_on_device(sums, range, answer, first);
  const Pointers p(range);
  const auto* values = answer.const_data_ptr<double>();
  walk(sums, range, first, [&](Terms& x, int64_t begin, int64_t length) {
    for (int64_t j = 0; j < length; ++j) {
      const bool finite = p.finite(begin + j), counts = finite && std::abs(values[begin + j]) < kInfinity;
      x.truth[j] = finite ? p.truth[begin + j] : 0;
      x.error[j] = counts ? values[begin + j] - p.truth[begin + j] : 0;
    }
  });
}

void ErrorStatistics::add_sample(const Sums& sums, Sample kind) {
  const bool noise = kind == Sample::kNoise;
  sample_count_ += noise, shifted_ |= !noise;
  for (size_t g = 0; g < sums.size(); ++g) {
    if (truth_[g].count < kFewest) continue;
    auto& s = samples_[g];
    const double slope = slope_of(sums[g], truth_[g]);
    s.largest_energy = std::max(s.largest_energy, sums[g].e2);
    if (noise) {
      s.bias2 += sums[g].e * sums[g].e;
      s.gain2 += sums[g].et * sums[g].et;
      s.slope2 += slope * slope;
    } else {
      s.bias.add(sums[g].e), s.gain.add(sums[g].et), s.slope.add(slope);
    }
  }
}

// How far each statistic of rounding alone is spread.
struct ErrorStatistics::Test {
  double bias, gain, slope;
  explicit Test(const TruthSums& t)
      : bias(std::sqrt(t.ulp2 * t.count)),
        gain(std::sqrt(t.ulp2 * t.t2)),
        slope(std::sqrt(t.ulp2 * std::max(0.0, t.t2 - t.t * t.t / t.count))) {
    // A spread that is lost in the sums' own rounding is none.
    if (t.t2 - t.t * t.t / t.count < 1e-9 * t.t2) slope = kInfinity;
  }
};

ErrorStatistics::Typical ErrorStatistics::typical(const Family& family) const {
  std::vector<double> energy, bias, gain, slope;
  for (int64_t g = family.first; g < family.first + family.groups; ++g) {
    const auto& t = truth_[static_cast<size_t>(g)];
    const auto& s = samples_[static_cast<size_t>(g)];
    if (t.count < kFewest || t.ulp2 == 0) continue;
    const Test unit(t);
    const auto root = [&](double sum) { return std::sqrt(sum / std::max(sample_count_, 1)); };
    energy.push_back(s.largest_energy / t.ulp2);
    bias.push_back(root(s.bias2) / unit.bias);
    if (unit.gain > 0) gain.push_back(root(s.gain2) / unit.gain);
    if (unit.slope > 0) slope.push_back(root(s.slope2) / unit.slope);
  }
  return {median(energy), median(bias), median(gain), median(slope)};
}

std::vector<double> ErrorStatistics::scales_of_values(const Family& family) const {
  std::vector<double> scales(kExponents, scale_);
  bool fills = true;  // all that is larger is one number again and again
  for (int64_t top = 0, end = 0; top < kExponents; top = end) {
    TruthSums sum;
    double spread = 0;
    int64_t gap = 0;
    for (end = top; end < kExponents && gap < kGap; ++end) {
      const double before = sum.count;
      for (const auto sign : {int64_t{0}, kExponents}) {
        const auto& t = truth_[static_cast<size_t>(family.first + end + sign)];
        add_to(sum, t);
        if (t.count > 0) spread = std::max(spread, t.t2 - t.t * t.t / t.count);
      }
      gap = sum.count > before ? 0 : sum.count > 0 ? gap + 1 : 0;
    }
    const double own = sum.count > 0 ? std::sqrt(sum.t2 / sum.count) : 0;
    if (top > 0 && own > 0 && (fills || own > kDigits * scale_))
      std::fill(scales.begin() + top, scales.begin() + end, std::min(own, scale_));
    fills = fills && spread <= 1e-9 * sum.t2;
  }
  return scales;
}

void ErrorStatistics::check_slice(const Family& family, const Typical& typical, int64_t slice, double scale,
                                  const Sums& got, const StatisticsLimits& limits,
                                  std::optional<SystematicError>& worst) const {
  const auto g = static_cast<size_t>(family.first + slice);
  const auto& t = truth_[g];
  const auto& e = got[g];
  const auto& s = samples_[g];
  if (t.count < kFewest || t.ulp2 == 0) return;
  const bool values = family.kind == Family::Kind::kValues;
  const double eps = epsilon(type_), n = t.count, rounding = t.ulp2 / 12;
  const auto note = [&](double found, double limit, const char* what) {
    if (!(found > limit) || (worst && found / limit <= worst->found / worst->limit)) return;
    worst = {
        fmt::format("{} {} {:.3g} where rounding leaves {:.3g}", name(family, slice), what, found, limit),
        found, limit};
  };

  // The sum of squares: of n elements it varies by sqrt(2 / n).
  constexpr double kSpread = 6;
  const double few = 1 + kSpread * std::sqrt(2 / n) + kSpread * kSpread / n;
  const double residue = values ? limits.small_energy * eps : limits.residue;
  const double forgiven = limits.energy_ulps * limits.energy_ulps * t.ulp2 + std::pow(residue * scale, 2) * n;
  const double cancelled =
      scale < scale_ ? kCancelled : limits.energy;  // what cancels has no scale of its own
  const double usual = few * std::max({limits.energy * rounding, cancelled * s.largest_energy,
                                       limits.energy * typical.energy * t.ulp2, forgiven});
  const double energy = std::max(usual, limits.few_elements * scale_ * scale_);
  const double unit = std::sqrt(t.ulp2 / n);
  note(std::sqrt(e.e2 / n) / unit, std::sqrt(energy / n) / unit, "the error's root mean square in ulps is");

  const double z = std::sqrt(2 * std::log(6 * static_cast<double>(truth_.size()) / kFalseAlarm));
  const Test test(t);
  const auto systematic = [&](double found, double self, double spread, double samples2, double usual,
                              double floor, const Range& shift, const char* what) {
    if (!(spread > 0) || spread == kInfinity) return;
    const double own = std::sqrt(samples2 / std::max(sample_count_, 1));
    const double family = shifted_ && sample_count_ < 2 ? kFamilyFactorShifted : kFamilyFactor;
    const double chance = std::max({z * self, limits.bias_ulps * spread, floor});
    const double noise = std::max(sample_factor(sample_count_) * own, family * usual * spread);
    // One sample of noise says little of it: then it may come on top of what is shifted.
    const double edge = shift.edge(found);
    const double limit = sample_count_ < 2 ? edge + std::max(chance, noise) : std::max(edge + chance, noise);
    note(std::abs(found) / spread, limit / spread, what);
  };
  const double mean = t.t / n;
  systematic(e.e, std::sqrt(e.e2), test.bias, s.bias2, typical.bias,
             (values ? limits.small_bias * eps : limits.residue) * scale * n, s.bias,
             "the mean error in ulps is");
  if (values) return;  // within one exponent, error that grows with the answer is a mean error
  const double residue_of = limits.residue * scale_ * std::sqrt(n);
  systematic(e.et, std::sqrt(e.e2t2), test.gain, s.gain2, typical.gain, residue_of * std::sqrt(t.t2), s.gain,
             "the error goes with the answer: in ulps by");
  const double self2 = e.e2t2 - 2 * mean * e.e2t + mean * mean * e.e2;
  systematic(slope_of(e, t), std::sqrt(std::max(0.0, self2)), test.slope, s.slope2, typical.slope,
             residue_of * std::sqrt(std::max(0.0, t.t2 - n * mean * mean)), s.slope,
             "the error goes with the answer's deviation from its mean: in ulps by");
}

std::optional<SystematicError> ErrorStatistics::check(const Sums& got, const StatisticsLimits& limits) const {
  std::optional<SystematicError> worst;
  for (const auto& family : families_) {
    const auto usual = typical(family);
    const bool values = family.kind == Family::Kind::kValues;
    const auto scales = values ? scales_of_values(family) : std::vector<double>{scale_};
    for (int64_t slice = 0; slice < family.groups; ++slice)
      check_slice(family, usual, slice, scales[static_cast<size_t>(values ? slice % kExponents : 0)], got,
                  limits, worst);
  }
  return worst;
}

std::string ErrorStatistics::name(const Family& family, int64_t slice) const {
  switch (family.kind) {
    case Family::Kind::kWhole:
      return "over the whole output";
    case Family::Kind::kDimension: {
      const auto last = std::min((slice + 1) * family.per, family.size) - 1;
      const auto place = last == slice * family.per
                             ? fmt::format("index {}", last)
                             : fmt::format("indices {} to {}", slice * family.per, last);
      return fmt::format("over {} of dimension {}", place, family.dimension);
    }
    case Family::Kind::kRun:
      return fmt::format("over the {} elements from element {}", family.inner, slice * family.inner);
    case Family::Kind::kValues: {
      const auto power = kExponentsAbove - slice % kExponents;
      const auto size = std::ldexp(1, std::ilogb(scale_) + static_cast<int>(power));
      return fmt::format("over elements between {:.3g} and {:.3g}", slice < kExponents ? size : -size,
                         slice < kExponents ? 2 * size : -2 * size);
    }
  }
  return {};
}

at::Tensor ErrorStatistics::groups_of(const Family& family, const ElementRange& range, int64_t first) const {
  const auto& truth = range.truth;
  if (family.kind != Family::Kind::kValues)
    return at::arange(first, first + truth.numel(), truth.options().dtype(c10::kLong))
        .floor_divide_(family.inner)
        .remainder_(family.size)
        .floor_divide_(family.per);
  const auto bits = truth.view(c10::kLong);
  const auto exponent = bits.bitwise_right_shift(52).bitwise_and(0x7FF);
  const int64_t top = static_cast<int64_t>(std::bit_cast<uint64_t>(scale_) >> 52 & 0x7FF) + kExponentsAbove;
  return exponent.neg().add_(top).clamp_(0, kExponents - 1).add_(bits.lt(0).mul(kExponents));
}

namespace {

at::Tensor finite_of(const ElementRange& s) {
  auto finite = at::isfinite(s.own).logical_and(s.truth.abs().le(s.largest));
  return s.agreed.defined() ? finite.logical_and(s.agreed) : finite;
}

// Adds rows [n, columns] up by group, and gives them to add(group, row).
template <typename Add>
void by_group(const at::Tensor& rows, const at::Tensor& group, int64_t groups, Add add) {
  auto sums = groups == 1 ? rows.sum(0, true) : at::zeros({groups, rows.size(1)}, rows.options());
  if (groups > 1) sums.index_add_(0, group, rows);
  sums = sums.to(at::kCPU).contiguous();
  const auto* values = sums.template const_data_ptr<double>();
  for (int64_t g = 0; g < groups; ++g) add(g, values + g * rows.size(1));
}

}  // namespace

void ErrorStatistics::add_on_device(std::vector<TruthSums>& into, const ElementRange& range,
                                    int64_t first) const {
  const auto finite = finite_of(range);
  const auto truth = at::where(finite, range.truth, 0.0);
  auto power = truth.view(c10::kLong).bitwise_and(0x7FF0000000000000).view(c10::kDouble);
  const auto ulp = at::where(finite, power.mul(epsilon(type_)).clamp_min(smallest_ulp(type_)), 0.0);
  const auto rows = at::stack({finite.to(c10::kDouble), truth, truth.square(), ulp.square()}, 1);
  for (const auto& f : families_)
    by_group(rows, f.groups == 1 ? at::Tensor() : groups_of(f, {{}, {}, truth, {}, 0}, first), f.groups,
             [&](int64_t g, const double* r) {
               add_to(into[static_cast<size_t>(f.first + g)], {r[0], r[1], r[2], r[3]});
             });
}

void ErrorStatistics::add_on_device(Sums& into, const ElementRange& range, const at::Tensor& answer,
                                    int64_t first) const {
  const auto finite = finite_of(range);
  const auto t = at::where(finite, range.truth, 0.0);
  const auto e = at::where(finite.logical_and(at::isfinite(answer)), answer.sub(range.truth), 0.0);
  const auto et = e.mul(t);
  const auto rows = at::stack({e, e.square(), et, e.mul(et), et.square()}, 1);
  for (const auto& f : families_)
    by_group(rows, f.groups == 1 ? at::Tensor() : groups_of(f, {{}, {}, t, {}, 0}, first), f.groups,
             [&](int64_t g, const double* r) {
               add_to(into[static_cast<size_t>(f.first + g)], {r[0], r[1], r[2], r[3], r[4]});
             });
}

}  // namespace nereid::replay
