// Medians and how well they are known.
#pragma once

#include <cstdint>
#include <vector>

namespace nereid::gpu {

struct Interval {
  double low = 0, high = 0;
};

// The middle sample, or the mean of the two middle ones; at least one sample.
double median(std::vector<double> samples);

struct BootstrapOptions {
  double confidence = 0.95;
  int resamples = 1000;
  uint64_t seed = 1;  // the same samples and seed give the same interval
};

// Percentile bootstrap (Efron 1979) of the median, and of the ratio median(numerator) / median(denominator).
Interval bootstrap_median(const std::vector<double>& samples, const BootstrapOptions& options = {});
Interval bootstrap_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator,
                         const BootstrapOptions& options = {});

// Width of the interval over the value in its middle; infinite where that is not positive.
double relative_width(const Interval& interval);

}  // namespace nereid::gpu
