// Each value is a mean, a standard deviation, and facts that make a later reduction constant:
//   - what is fixed along a set of axes: the sum (softmax, norms), the sum of squares (norms), the sum of
//   exponentials
//   - which share of the elements lies at the value's own lowest or highest (relu, clamp): a minimum or
//   maximum over many
//     such elements is always the same
//   - which earlier value it equals (relu of what is not negative): a difference of the two is zero
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace nereid::synth {

// What is known of a value's elements, whatever the inputs.
struct ValueStatistics {
  double mean = 0, sd = 1;
  bool nonnegative = false;
  uint8_t fixed_sum = 0, fixed_square = 0, fixed_exp = 0;  // sets of axes
  double at_lowest = 0, at_highest = 0;                    // shares of the elements
  int same_as = -1;                                        // number of a value

  void forget() { fixed_sum = fixed_square = fixed_exp = 0; }
  double rms() const { return std::sqrt(mean * mean + sd * sd); }
  double share_below(double bound) const;  // of a normal distribution

  // f's mean and deviation over a normal distribution, or a lognormal one of what is positive (Gauss and
  // Hermite's 7 points).
  ValueStatistics through(double (*f)(double)) const;
  // What a pointwise operator of one operand, by its name, makes of it.
  ValueStatistics after(std::string_view name) const;
  ValueStatistics times(const ValueStatistics& other) const;
  // Elements of both, as many of each.
  ValueStatistics mixed_with(const ValueStatistics& other) const;
};

double softplus(double x);

}  // namespace nereid::synth
