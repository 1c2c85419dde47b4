#include "nereid/replay/worker/compare/error_metrics.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "nereid/replay/worker/compare/error_terms.h"
#include "nereid/replay/worker/compare/fused_metrics.h"

namespace nereid::replay {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;  // elements that a thread is worth

bool in_reach(const ElementRange& range) { return range.truth.is_cpu(); }
const FusedMetrics* fused(const ElementRange& s, const at::Tensor& other = {}) {
  return fused_metrics({s.got, s.own, s.truth, other});
}

// Most ranges hold finite numbers with errors below everything that is recorded. Such pieces take a loop of
// two elements at once; any other element in a piece sends all of it through the loop over single elements.
constexpr int64_t kPiece = 256;
using Pair = double __attribute__((vector_size(16)));
using Bits = int64_t __attribute__((vector_size(16)));

Pair load(const double* from) { return Pair{from[0], from[1]}; }
Pair absolute(Pair x) { return reinterpret_cast<Pair>(reinterpret_cast<Bits>(x) & INT64_MAX); }
Pair larger(Pair a, Pair b) { return a > b ? a : b; }
bool all(Bits b) { return (b[0] & b[1]) != 0; }
double sum(Pair x) { return x[0] + x[1]; }
double largest(Pair x) { return std::max(x[0], x[1]); }

// A range's elements as numbers. The tensors are contiguous.
class Elements {
 public:
  explicit Elements(const ElementRange& s)
      : got_(s.got.const_data_ptr<double>()),
        own_(s.own.const_data_ptr<double>()),
        truth_(s.truth.const_data_ptr<double>()),
        largest_(s.largest) {
    if (s.agreed.defined()) agreed_ = s.agreed.const_data_ptr<bool>();
  }

  double got(int64_t i) const { return got_[i]; }
  double own(int64_t i) const { return own_[i]; }
  double truth(int64_t i) const { return truth_[i]; }
  bool same(int64_t i) const { return terms::same(got_[i], own_[i]); }

  using Standing = terms::Standing;
  Standing standing(int64_t i) const {
    return agreed_ != nullptr ? terms::standing_of(own_[i], truth_[i], largest_, agreed_[i])
                              : terms::standing_of(own_[i], truth_[i], largest_);
  }
  bool finite(int64_t i) const { return standing(i) == Standing::kFinite; }
  const double* gots() const { return got_; }
  const double* truths() const { return truth_; }
  // Of elements i and i + 1: all bits where both are finite, 0 where each needs a look of its own.
  Bits all_defined() const { return agreed_ == nullptr ? Bits{-1, -1} : Bits{}; }
  Bits plain(int64_t i) const {
    const Pair most{largest_, largest_}, infinity{kInfinity, kInfinity};
    return (absolute(load(own_ + i)) < infinity) & (absolute(load(truth_ + i)) <= most);
  }

 private:
  const double *got_, *own_, *truth_;
  const bool* agreed_ = nullptr;
  double largest_;
};

// Adds up `part(first, last)` over a range, in parallel where that is worth it; in order, so that the same
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

// Calls fast(first, last) for pieces of an even length; where it says false, and for what remains,
// slow(first, last).
template <typename Fast, typename Slow>
void in_pieces(int64_t first, int64_t last, Fast fast, Slow slow) {
  for (int64_t i = first; i < last; i += kPiece) {
    const int64_t end = std::min(last, i + kPiece);
    if ((end - i) % 2 != 0 || !fast(i, end)) slow(i, end);
  }
}

// `fast(e, first, last, part)`: adds a piece to `part` and says true where nothing in it is odd, wrong or
// worse than `part` knows.
template <typename Error, typename Wrong, typename Fast>
CandidateError judge(const ElementRange& range, Error error_of, Wrong wrong_of, Fast fast) {
  const Elements e(range);
  const auto one = [&](int64_t i, int64_t begin, CandidateError& part) {
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
    if (part.worst < 0 || error > part.largest) part.largest = error, part.worst = i - begin;
    if (standing == Elements::Standing::kUndefined || !wrong_of(e, i, error)) return;
    if (part.first < 0) part.first = i - begin;
    ++part.wrong;
  };
  CandidateError sum;
  sum_over(
      range.truth.numel(),
      [&](int64_t first, int64_t last) {
        CandidateError part;
        in_pieces(
            first, last,
            [&](int64_t begin, int64_t end) { return part.worst >= 0 && fast(e, begin, end, part); },
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) one(i, first, part);
            });
        return part;
      },
      [&](const CandidateError& part, int64_t offset) { sum.add(part, offset); });
  return sum;
}

}  // namespace

void Scale::add(const Scale& other) {
  squared += other.squared, count += other.count, undefined += other.undefined;
}

void ReferenceError::add(const ReferenceError& other) {
  largest = std::max(largest, other.largest), squared += other.squared;
}

void ReferenceError::widen(const ReferenceError& other) {
  largest = std::max(largest, other.largest), squared = std::max(squared, other.squared);
}

void CandidateError::add(const CandidateError& part, int64_t offset) {
  if (part.first >= 0 && (first < 0 || offset + part.first < first)) first = offset + part.first;
  const bool earlier = part.largest == largest && offset + part.worst < worst;
  if (part.worst >= 0 && (worst < 0 || part.largest > largest || earlier))
    worst = offset + part.worst, largest = part.largest;
  wrong += part.wrong, squared += part.squared;
  absolute = std::max(absolute, part.absolute), relative = std::max(relative, part.relative);
}

Scale scale_of(const ElementRange& range) {
  if (const auto* metrics = fused(range)) return metrics->scale_of(range);
  if (!in_reach(range)) return by_operators::scale_of(range);
  const Elements e(range);
  Scale total;
  sum_over(
      range.truth.numel(),
      [&](int64_t first, int64_t last) {
        Scale part;
        in_pieces(
            first, last,
            [&](int64_t begin, int64_t end) {
              Pair squares{};
              Bits plain = e.all_defined();
              for (int64_t i = begin; i < end; i += 2) {
                const Pair truth = load(e.truths() + i);
                plain &= e.plain(i);
                squares += truth * truth;
              }
              if (!all(plain)) return false;
              part.squared += sum(squares), part.count += end - begin;
              return true;
            },
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const auto standing = e.standing(i);
                part.undefined += standing == Elements::Standing::kUndefined;
                if (standing != Elements::Standing::kFinite) continue;
                part.squared += e.truth(i) * e.truth(i);
                ++part.count;
              }
            });
        return part;
      },
      [&](const Scale& part, int64_t) { total.add(part); });
  return total;
}

ReferenceError own_error(const ElementRange& range, const at::Tensor& other, double scale) {
  if (const auto* metrics = fused(range, other)) return metrics->own_error(range, other, scale);
  if (!in_reach(range)) return by_operators::own_error(range, other, scale);
  const Elements e(range);
  const auto* values = other.const_data_ptr<double>();
  const Pair unit{scale, scale}, infinity{kInfinity, kInfinity};
  ReferenceError total;
  sum_over(
      range.truth.numel(),
      [&](int64_t first, int64_t last) {
        ReferenceError part;
        in_pieces(
            first, last,
            [&](int64_t begin, int64_t end) {
              Pair squares{}, most{};
              Bits plain = e.all_defined();
              for (int64_t i = begin; i < end; i += 2) {
                const Pair value = load(values + i), truth = load(e.truths() + i), off = value - truth;
                plain &= e.plain(i) & (absolute(value) < infinity);
                squares += off * off;
                most = larger(absolute(off) / larger(absolute(truth), unit), most);
              }
              if (!all(plain)) return false;
              part.squared += sum(squares), part.largest = std::max(part.largest, largest(most));
              return true;
            },
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                if (!std::isfinite(values[i]) || !e.finite(i)) continue;
                const double off = values[i] - e.truth(i);
                part.squared += off * off;
                part.largest = std::max(part.largest, terms::in_scale(off, e.truth(i), scale));
              }
            });
        return part;
      },
      [&](const ReferenceError& part, int64_t) { total.add(part); });
  return total;
}

CandidateError scaled_error(const ElementRange& range, double scale, double limit) {
  if (const auto* metrics = fused(range)) return metrics->scaled_error(range, scale, limit);
  if (!in_reach(range)) return by_operators::scaled_error(range, scale, limit);
  const Pair unit{scale, scale}, infinity{kInfinity, kInfinity};
  return judge(
      range,
      [&](const Elements& e, int64_t i) { return terms::in_scale(e.got(i) - e.truth(i), e.truth(i), scale); },
      [&](const Elements&, int64_t, double error) { return error > limit; },
      [&](const Elements& e, int64_t begin, int64_t end, CandidateError& part) {
        const double bound = std::min(part.largest, limit);
        const Pair bounds{bound, bound};
        Pair squares{}, size_most{}, relative_most{};
        Bits plain = e.all_defined();
        for (int64_t i = begin; i < end; i += 2) {
          const Pair truth = load(e.truths() + i), off = load(e.gots() + i) - truth;
          const Pair size = absolute(off), truth_size = absolute(truth), relative = size / truth_size;
          plain &= e.plain(i) & (size / larger(truth_size, unit) <= bounds);
          squares += off * off;
          size_most = larger(size, size_most);
          relative_most = relative < infinity ? larger(relative, relative_most) : relative_most;
        }
        if (!all(plain)) return false;
        part.squared += sum(squares);
        part.absolute = std::max(part.absolute, largest(size_most));
        part.relative = std::max(part.relative, largest(relative_most));
        return true;
      });
}

CandidateError plain_error(const ElementRange& range, double rtol, double atol, bool of_got) {
  if (const auto* metrics = fused(range)) return metrics->plain_error(range, rtol, atol, of_got);
  if (!in_reach(range)) return by_operators::plain_error(range, rtol, atol, of_got);
  return judge(
      range, [&](const Elements& e, int64_t i) { return std::abs(e.got(i) - e.own(i)); },
      [&](const Elements& e, int64_t i, double) {
        return !(std::abs(e.got(i) - e.own(i)) <= std::abs(of_got ? e.got(i) : e.own(i)) * rtol + atol) &&
               !e.same(i);
      },
      [](const Elements&, int64_t, int64_t, CandidateError&) { return false; });
}

}  // namespace nereid::replay
