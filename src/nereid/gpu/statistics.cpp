#include "nereid/gpu/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "nereid/base/check.h"

namespace nereid::gpu {
namespace {

// The median of a resample is the sample at the median of n ranks drawn from 0 to n - 1, floor(n V) of n
// uniform V. Of these only the middle ones are drawn: the k-th smallest of n is Beta(k, n + 1 - k), and the
// next the least of n - k uniforms above it (David and Nagaraja 2003, sections 2.1 and 2.5).
class MedianOfResample {
 public:
  explicit MedianOfResample(std::vector<double> samples)
      : sorted_(std::move(samples)), below_(half(sorted_.size() + 1)), above_(half(sorted_.size() + 2)) {
    NEREID_CHECK(!sorted_.empty(), "at least one sample");
    std::sort(sorted_.begin(), sorted_.end());
  }
  double draw(std::mt19937_64& random) {
    const double a = below_(random), b = above_(random);
    const double middle = a / (a + b);
    if (sorted_.size() % 2 == 1) return at(middle);
    const double beyond = half(sorted_.size());
    const double next = 1 - (1 - middle) * std::pow(uniform_(random), 1 / beyond);
    return (at(middle) + at(next)) / 2;
  }

 private:
  static double half(size_t count) {  // rounded down
    const size_t whole = count / 2;
    return static_cast<double>(whole);
  }
  double at(double quantile) const {
    const auto rank = static_cast<size_t>(quantile * static_cast<double>(sorted_.size()));
    return sorted_[std::min(rank, sorted_.size() - 1)];
  }

  std::vector<double> sorted_;
  std::gamma_distribution<double> below_, above_;
  std::uniform_real_distribution<double> uniform_;
};

Interval percentiles(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  const double tail = (1 - confidence) / 2;
  const auto last = static_cast<double>(values.size() - 1);
  return {values[static_cast<size_t>(tail * last)], values[static_cast<size_t>((1 - tail) * last + 0.5)]};
}

}  // namespace

double median(std::vector<double> samples) {
  NEREID_CHECK(!samples.empty(), "at least one sample");
  const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

Interval bootstrap_median(const std::vector<double>& samples, const BootstrapOptions& options) {
  std::mt19937_64 random(options.seed);
  MedianOfResample resample(samples);
  std::vector<double> medians(static_cast<size_t>(options.resamples));
  for (double& value : medians) value = resample.draw(random);
  return percentiles(std::move(medians), options.confidence);
}

Interval bootstrap_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator,
                         const BootstrapOptions& options) {
  std::mt19937_64 random(options.seed);
  MedianOfResample above(numerator), below(denominator);
  std::vector<double> ratios(static_cast<size_t>(options.resamples));
  for (double& value : ratios) value = above.draw(random) / below.draw(random);
  return percentiles(std::move(ratios), options.confidence);
}

double relative_width(const Interval& interval) {
  const double middle = (interval.low + interval.high) / 2;
  return middle > 0 ? (interval.high - interval.low) / middle : std::numeric_limits<double>::infinity();
}

}  // namespace nereid::gpu
