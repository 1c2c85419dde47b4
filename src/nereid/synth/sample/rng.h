// Random draws that depend on nothing but (seed, program, draw), and choices among counts that are exact.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "nereid/synth/write/natural.h"

namespace nereid::synth {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Draw d is a real number in [0, 1) of which any number of 64-bit digits may be asked.
class Rng {
 public:
  // `stream` separates draws of different purposes for the same program.
  Rng(uint64_t seed, uint64_t program, uint32_t stream = 0)
      : seed_(seed), program_(program), stream_(stream) {}
  void roll() { ++draw_; }
  uint64_t digit(uint32_t index) const;
  // A uniform integer in [0, n).
  uint32_t below(uint32_t n);

 private:
  uint64_t seed_, program_;
  uint32_t stream_, draw_ = 0;
};

inline constexpr int kUndecided = -1;
// The index of a weight, with probability weight / sum of the weights, which must not be 0.
// With doubles, kUndecided where their rounding might matter: then ask with naturals. Both take one draw.
int choose(Rng& rng, std::span<const double> weights);
int choose(Rng& rng, std::span<const Natural> weights);

// Whether a uniform draw from `total` is one of the first `part`: 1 or 0, or kUndecided as above.
int falls_to(Rng& rng, double part, double total);
int falls_to(Rng& rng, const Natural& part, const Natural& total);

// Weights to choose by again and again.
template <typename Number>
class Choices {
 public:
  void add(const Number& weight) { sum_ += weight, sums_.push_back(sum_); }
  bool empty() const { return sums_.empty(); }
  const Number& total() const { return sum_; }
  int choose(Rng& rng) const;

 private:
  Number sum_{0};
  std::vector<Number> sums_;
};
template <>
int Choices<double>::choose(Rng& rng) const;
template <>
int Choices<Natural>::choose(Rng& rng) const;

}  // namespace nereid::synth
