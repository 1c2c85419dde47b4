#include "nereid/replay/cuda/statistics.h"

#include <algorithm>
#include <limits>
#include <random>

#include "nereid/base/check.h"

namespace nereid::replay::cuda {
namespace {

// Resamples as ranks: the median of a resample of sorted samples is the sample at the median of the drawn
// ranks.
class MedianOfResample {
 public:
  explicit MedianOfResample(std::vector<double> samples)
      : sorted_(std::move(samples)), ranks_(sorted_.size()) {
    NEREID_CHECK(!sorted_.empty(), "at least one sample");
    std::sort(sorted_.begin(), sorted_.end());
  }
  double draw(std::mt19937_64& random) {
    for (uint32_t& rank : ranks_) rank = static_cast<uint32_t>((random() >> 32) * sorted_.size() >> 32);
    const size_t middle = ranks_.size() / 2;
    std::nth_element(ranks_.begin(), ranks_.begin() + static_cast<ptrdiff_t>(middle), ranks_.end());
    const double upper = sorted_[ranks_[middle]];
    if (ranks_.size() % 2 == 1) return upper;
    const uint32_t below = *std::max_element(ranks_.begin(), ranks_.begin() + static_cast<ptrdiff_t>(middle));
    return (upper + sorted_[below]) / 2;
  }

 private:
  std::vector<double> sorted_;
  std::vector<uint32_t> ranks_;
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

}  // namespace nereid::replay::cuda
