#include "nereid/synth/sample/rng.h"

#include <gtest/gtest.h>

namespace nereid::synth {
namespace {

// Salmon et al.'s own known answers (their distribution's kat_vectors).
TEST(Philox, GivesItsKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, AreTheSameForTheSameProgram) {
  Rng first(1, 2), again(1, 2), other(1, 3), elsewhere(1, 2, 1);
  const uint32_t drawn = first.below(1u << 31);
  EXPECT_EQ(drawn, again.below(1u << 31));
  EXPECT_NE(drawn, other.below(1u << 31));
  EXPECT_NE(drawn, elsewhere.below(1u << 31));
}

TEST(Rng, FallOnEverySideAlike) {
  Rng rng(5, 0);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen[rng.below(7)];
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 450);  // 4.8 standard deviations
}

template <typename Number>
std::vector<int> chosen(const std::vector<uint64_t>& weights, int draws) {
  std::vector<Number> numbers;
  for (const uint64_t weight : weights) numbers.push_back(Number(static_cast<double>(weight)));
  std::vector<int> seen(weights.size());
  Rng rng(9, 1);
  for (int i = 0; i < draws; ++i) ++seen[static_cast<size_t>(choose(rng, std::span<const Number>(numbers)))];
  return seen;
}

TEST(Choose, GoesByWeight) {
  const std::vector<uint64_t> weights = {0, 1, 0, 3, 6, 0};
  const auto seen = chosen<double>(weights, 100'000);
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_NEAR(seen[i], 10'000.0 * static_cast<double>(weights[i]), 700) << i;
  EXPECT_EQ(seen, chosen<Natural>(weights, 100'000));
}

// Two weights whose boundary lies where the first digit of the draw is: doubles cannot decide, naturals can.
TEST(Choose, SaysWhenADoubleCannotDecide) {
  const uint64_t digit = [] {
    Rng rng(4, 4);
    rng.roll();
    return rng.digit(0);
  }();
  Rng rng(4, 4), exact(4, 4);
  const std::vector<double> doubles = {static_cast<double>(digit), 0x1p64 - static_cast<double>(digit)};
  EXPECT_EQ(choose(rng, std::span<const double>(doubles)), kUndecided);
  Natural rest(~digit);
  rest += Natural(1);
  const std::vector<Natural> naturals = {Natural(digit), rest};  // the draw is at the boundary or above
  EXPECT_EQ(choose(exact, std::span<const Natural>(naturals)), 1);
  Natural above(digit);
  above += Natural(1);
  Rng again(4, 4);
  const std::vector<Natural> moved = {above, Natural(~digit)};
  EXPECT_EQ(choose(again, std::span<const Natural>(moved)), 0);
}

TEST(Natural, AddsMultipliesAndCompares) {
  Natural large(~uint64_t{0});
  large += Natural(1);
  EXPECT_EQ(large, Natural(1).shifted_by_word());
  EXPECT_EQ((large * large).to_double(), 0x1p128);
  EXPECT_LT(Natural(5), large);
  EXPECT_EQ(Natural(0) * large, Natural());
  Natural power(1);
  for (int i = 0; i < 100; ++i) power = power * Natural(10);
  EXPECT_DOUBLE_EQ(power.to_double(), 1e100);
}

}  // namespace
}  // namespace nereid::synth
