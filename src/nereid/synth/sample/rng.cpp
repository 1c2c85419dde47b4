#include "nereid/synth/sample/rng.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::synth {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t Rng::digit(uint32_t index) const {
  const auto words = philox({static_cast<uint32_t>(program_), static_cast<uint32_t>(program_ >> 32), draw_,
                             (stream_ << 16) | index},
                            {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  return (uint64_t{words[1]} << 32) | words[0];
}

// floor(n * U): certain unless the digits not yet seen could carry into it.
uint32_t Rng::below(uint32_t n) {
  NEREID_CHECK(n > 0, "a range with something in it");
  roll();
  unsigned __int128 product = static_cast<unsigned __int128>(digit(0)) * n;
  const uint32_t whole = static_cast<uint32_t>(product >> 64);
  for (uint32_t index = 1; index < 64; ++index) {
    const uint64_t rest = static_cast<uint64_t>(product);
    if (rest <= UINT64_MAX - n) break;  // what follows is less than n units of the last place
    const unsigned __int128 next = static_cast<unsigned __int128>(digit(index)) * n;
    if (static_cast<uint64_t>(next >> 64) > UINT64_MAX - rest) return whole + 1;
    if (rest + static_cast<uint64_t>(next >> 64) != UINT64_MAX) break;
    product = (static_cast<unsigned __int128>(UINT64_MAX) << 64) | static_cast<uint64_t>(next);
  }
  return whole;
}

namespace {

constexpr double kMargin = 1e-11;  // above the rounding of a sum of a million terms, some products deep

// Whether U * total < sum, with as many digits of U as it takes: with k digits D, D <= 2^(64k) U < D + 1.
bool falls_below(const Rng& rng, const Natural& sum, const Natural& total) {
  Natural digits, bound = sum;
  for (uint32_t k = 0; k < 1024; ++k) {
    digits = digits.shifted_by_word();
    digits += Natural(rng.digit(k));
    bound = bound.shifted_by_word();
    const Natural low = digits * total;
    Natural high = low;
    high += total;
    if (high <= bound) return true;
    if (low >= bound) return false;
  }
  return false;
}

}  // namespace

int choose(Rng& rng, std::span<const double> weights) {
  rng.roll();
  double total = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    total += weights[i];
    if (weights[i] > 0) last = i;
  }
  NEREID_CHECK(total > 0 && std::isfinite(total), "a positive count, got {}", total);
  const double wanted = total * (static_cast<double>(rng.digit(0)) * 0x1p-64);
  const double margin = total * kMargin;
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    sum += weights[i];
    if (i == last || wanted < sum - margin) return static_cast<int>(i);
    if (wanted <= sum + margin) return kUndecided;
  }
  return kUndecided;
}

int choose(Rng& rng, std::span<const Natural> weights) {
  rng.roll();
  Natural total;
  for (const Natural& weight : weights) total += weight;
  NEREID_CHECK(!total.is_zero(), "a positive count");
  Natural sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].is_zero()) continue;
    sum += weights[i];
    if (falls_below(rng, sum, total)) return static_cast<int>(i);
  }
  return kUndecided;
}

int falls_to(Rng& rng, double part, double total) {
  rng.roll();
  const double wanted = total * (static_cast<double>(rng.digit(0)) * 0x1p-64);
  if (std::abs(wanted - part) <= total * kMargin) return kUndecided;
  return wanted < part ? 1 : 0;
}

int falls_to(Rng& rng, const Natural& part, const Natural& total) {
  rng.roll();
  return falls_below(rng, part, total) ? 1 : 0;
}

template <>
int Choices<double>::choose(Rng& rng) const {
  rng.roll();
  NEREID_CHECK(sum_ > 0 && std::isfinite(sum_), "a positive count, got {}", sum_);
  const double wanted = sum_ * (static_cast<double>(rng.digit(0)) * 0x1p-64);
  const double margin = sum_ * kMargin;
  const auto found = std::upper_bound(sums_.begin(), sums_.end(), wanted);
  const auto last = std::lower_bound(sums_.begin(), sums_.end(), sum_);  // the last of any weight
  const auto chosen = std::min(found, last);
  if (chosen != last && *chosen - wanted <= margin) return kUndecided;
  if (chosen != sums_.begin() && chosen[-1] > 0 && wanted - chosen[-1] <= margin) return kUndecided;
  return static_cast<int>(chosen - sums_.begin());
}

template <>
int Choices<Natural>::choose(Rng& rng) const {
  rng.roll();
  NEREID_CHECK(!sum_.is_zero(), "a positive count");
  const auto found = std::partition_point(sums_.begin(), sums_.end(),
                                          [&](const Natural& sum) { return !falls_below(rng, sum, sum_); });
  return static_cast<int>(found - sums_.begin());
}

}  // namespace nereid::synth
