#include "nereid/replay/worker/reckon.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

namespace nereid::replay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kGrain = int64_t{1} << 15;  // elements that a thread is worth

bool in_reach(const Stretch& stretch) { return stretch.truth.is_cpu(); }

// A stretch's elements as numbers. The tensors are contiguous.
class Elements {
 public:
  explicit Elements(const Stretch& s)
      : got_(s.got.const_data_ptr<double>()),
        own_(s.own.const_data_ptr<double>()),
        truth_(s.truth.const_data_ptr<double>()),
        largest_(s.largest) {
    if (s.agreed.defined()) agreed_ = s.agreed.const_data_ptr<bool>();
  }

  double got(int64_t i) const { return got_[i]; }
  double own(int64_t i) const { return own_[i]; }
  double truth(int64_t i) const { return truth_[i]; }
  bool same(int64_t i) const { return got_[i] == own_[i] || (std::isnan(got_[i]) && std::isnan(own_[i])); }

  enum class Standing { kUndefined, kOdd, kFinite };
  // Odd: an infinity or a NaN, and it is to be the same.
  Standing standing(int64_t i) const {
    const double truth = truth_[i], own = own_[i];
    const bool truth_is_finite = std::abs(truth) <= largest_;
    if (agreed_ != nullptr)
      return agreed_[i] && std::isfinite(own) && truth_is_finite ? Standing::kFinite : Standing::kUndefined;
    if (std::isfinite(own) && truth_is_finite) return Standing::kFinite;
    if (std::isfinite(own) || truth_is_finite) return Standing::kUndefined;
    const bool same = std::isnan(truth) ? std::isnan(own) : own == std::copysign(kInfinity, truth);
    return same ? Standing::kOdd : Standing::kUndefined;
  }
  bool finite(int64_t i) const { return standing(i) == Standing::kFinite; }
  // Finite for sure, told with two comparisons.
  bool plain(int64_t i) const {
    return agreed_ == nullptr && std::abs(own_[i]) < kInfinity && std::abs(truth_[i]) <= largest_;
  }

 private:
  const double *got_, *own_, *truth_;
  const bool* agreed_ = nullptr;
  double largest_;
};

// Adds up `part(first, last)` over a stretch, in parallel where that is worth it; in order, so that the same
// elements give the same sum.
template <typename Part, typename Merge>
void sum_over(int64_t count, Part part, Merge merge) {
  std::mutex mutex;
  std::map<int64_t, decltype(part(0, 0))> parts;
  at::parallel_for(0, count, kGrain, [&](int64_t first, int64_t last) {
    auto sum = part(first, last);
    const std::lock_guard lock(mutex);
    parts.emplace(first, std::move(sum));
  });
  for (const auto& [first, sum] : parts) merge(sum, first);
}

// Most elements are plain finite numbers with an error below everything that would be noted of it: told
// quickly. Comparisons are by multiplying, which may be off by an ulp, hence the slack; whoever passes is
// divided.
constexpr double kSlack = 1 - 1e-12;

// `below(e, i, size, bound)`: whether an error of |got - truth| = size is surely neither above `bound`, in
// the unit of the limit, nor wrong.
template <typename Error, typename Wrong, typename Below>
GotError judge(const Stretch& stretch, Error error_of, Wrong wrong_of, Below below) {
  const Elements e(stretch);
  GotError sum;
  sum_over(
      stretch.truth.numel(),
      [&](int64_t first, int64_t last) {
        GotError part;
        for (int64_t i = first; i < last; ++i) {
          if (e.plain(i) && part.worst >= 0) {
            const double off = e.got(i) - e.truth(i), size = std::abs(off), truth = std::abs(e.truth(i));
            if (size <= part.absolute && size <= part.relative * truth * kSlack &&
                below(e, i, size, part.largest * kSlack)) {
              part.squared += off * off;
              continue;
            }
          }
          const auto standing = e.standing(i);
          double error = 0;
          if (standing == Elements::Standing::kFinite) {
            const double off = e.got(i) - e.truth(i), size = std::abs(off);
            part.squared += off * off;
            if (size > part.absolute && size < kInfinity) part.absolute = size;
            if (const double relative = size / std::abs(e.truth(i));
                relative < kInfinity && relative > part.relative)
              part.relative = relative;
            error = error_of(e, i);
            if (std::isnan(error)) error = kInfinity;
          } else if (standing == Elements::Standing::kOdd && !e.same(i)) {
            error = kInfinity;
          }
          if (part.worst < 0 || error > part.largest) part.largest = error, part.worst = i - first;
          if (standing == Elements::Standing::kUndefined || !wrong_of(e, i, error)) continue;
          if (part.first < 0) part.first = i - first;
          ++part.wrong;
        }
        return part;
      },
      [&](const GotError& part, int64_t offset) { sum.add(part, offset); });
  return sum;
}

}  // namespace

void Scale::add(const Scale& other) {
  squared += other.squared, count += other.count, undefined += other.undefined;
}

void OwnError::add(const OwnError& other) {
  largest = std::max(largest, other.largest), squared += other.squared;
}

void OwnError::widen(const OwnError& other) {
  largest = std::max(largest, other.largest), squared = std::max(squared, other.squared);
}

void GotError::add(const GotError& part, int64_t offset) {
  if (part.first >= 0 && (first < 0 || offset + part.first < first)) first = offset + part.first;
  const bool earlier = part.largest == largest && offset + part.worst < worst;
  if (part.worst >= 0 && (worst < 0 || part.largest > largest || earlier))
    worst = offset + part.worst, largest = part.largest;
  wrong += part.wrong, squared += part.squared;
  absolute = std::max(absolute, part.absolute), relative = std::max(relative, part.relative);
}

Scale scale_of(const Stretch& stretch) {
  if (!in_reach(stretch)) return by_operators::scale_of(stretch);
  const Elements e(stretch);
  Scale sum;
  sum_over(
      stretch.truth.numel(),
      [&](int64_t first, int64_t last) {
        Scale part;
        for (int64_t i = first; i < last; ++i) {
          const auto standing = e.plain(i) ? Elements::Standing::kFinite : e.standing(i);
          part.undefined += standing == Elements::Standing::kUndefined;
          if (standing != Elements::Standing::kFinite) continue;
          part.squared += e.truth(i) * e.truth(i);
          ++part.count;
        }
        return part;
      },
      [&](const Scale& part, int64_t) { sum.add(part); });
  return sum;
}

OwnError own_error(const Stretch& stretch, const at::Tensor& other, double scale) {
  if (!in_reach(stretch)) return by_operators::own_error(stretch, other, scale);
  const Elements e(stretch);
  const auto* values = other.const_data_ptr<double>();
  OwnError sum;
  sum_over(
      stretch.truth.numel(),
      [&](int64_t first, int64_t last) {
        OwnError part;
        for (int64_t i = first; i < last; ++i) {
          if (!std::isfinite(values[i]) || !(e.plain(i) || e.finite(i))) continue;
          const double error = values[i] - e.truth(i);
          part.squared += error * error;
          if (std::abs(error) <= part.largest * kSlack * std::max(std::abs(e.truth(i)), scale)) continue;
          part.largest = std::max(part.largest, std::abs(error) / std::max(std::abs(e.truth(i)), scale));
        }
        return part;
      },
      [&](const OwnError& part, int64_t) { sum.add(part); });
  return sum;
}

GotError scaled_error(const Stretch& stretch, double scale, double limit) {
  if (!in_reach(stretch)) return by_operators::scaled_error(stretch, scale, limit);
  return judge(
      stretch,
      [&](const Elements& e, int64_t i) {
        return std::abs(e.got(i) - e.truth(i)) / std::max(std::abs(e.truth(i)), scale);
      },
      [&](const Elements&, int64_t, double error) { return error > limit; },
      [&](const Elements& e, int64_t i, double size, double bound) {
        return size <= std::min(bound, limit * kSlack) * std::max(std::abs(e.truth(i)), scale);
      });
}

GotError plain_error(const Stretch& stretch, double rtol, double atol) {
  if (!in_reach(stretch)) return by_operators::plain_error(stretch, rtol, atol);
  return judge(
      stretch, [&](const Elements& e, int64_t i) { return std::abs(e.got(i) - e.own(i)); },
      [&](const Elements& e, int64_t i, double) {
        return !(std::abs(e.got(i) - e.own(i)) <= std::abs(e.own(i)) * rtol + atol) && !e.same(i);
      },
      [](const Elements&, int64_t, double, double) { return false; });
}

}  // namespace nereid::replay
