#include "nereid/replay/worker/inputs/attention_rounding.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>

#include <limits>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

using trace::DType;

at::Generator seeded(uint64_t seed) {
  auto made = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  made.set_current_seed(seed);
  return made;
}

at::Tensor numbers(std::vector<int64_t> sizes, uint64_t seed) {
  return at::randn(sizes, seeded(seed), at::TensorOptions().dtype(c10::kDouble));
}

// What the result moves by.
at::Tensor error(const Attention& of, DType type = DType::kBF16, uint64_t seed = 5,
                 int64_t together = int64_t{1} << 24) {
  const std::optional<at::Tensor> mask = of.mask.defined() ? std::optional(of.mask) : std::nullopt;
  const auto truth = at::scaled_dot_product_attention(of.query, of.key, of.value, mask, 0.0, of.causal,
                                                      of.scale, of.grouped);
  auto made = truth.clone();
  round_probabilities(made, of, type, seeded(seed), together);
  return made.sub_(truth);
}

TEST(RoundProbabilitiesTest, ErrorsAreThoseOfRoundedProbabilitiesAndNewInEachDraw) {
  const Attention of{numbers({2, 3, 40, 16}, 1), numbers({2, 3, 48, 16}, 2), numbers({2, 3, 48, 8}, 3)};
  for (const auto& [type, half_ulp] : {std::pair{DType::kBF16, 0x1p-8}, {DType::kF16, 0x1p-11}}) {
    const auto found = error(of, type);
    const auto most = at::scaled_dot_product_attention(of.query, of.key, of.value.abs()).mul(half_ulp);
    EXPECT_TRUE(found.abs().le(most.add(1e-6 * half_ulp)).all().item().toBool());
    EXPECT_GT(found.abs().div(most).max().item().toDouble(), 0.1);
    EXPECT_FALSE(found.equal(error(of, type, 6)));
  }
}

TEST(RoundProbabilitiesTest, ElementsOfARowShareThem) {
  const Attention of{numbers({4, 16, 8}, 1), numbers({4, 16, 8}, 2),
                     numbers({4, 16, 1}, 3).expand({4, 16, 32})};
  const auto found = error(of);
  EXPECT_LT(found.sub(found.narrow(-1, 0, 1)).abs().max().item().toDouble(), 1e-15);
  EXPECT_GT(found.select(-1, 0).abs().min().item().toDouble(), 0);
}

TEST(RoundProbabilitiesTest, KeysThatARowDoesNotSeeHaveNone) {
  auto value = numbers({1, 2, 16, 4}, 3);
  value.select(2, 15).fill_(1e30);
  Attention causal{numbers({1, 2, 16, 8}, 1), numbers({1, 2, 16, 8}, 2), value};
  causal.causal = true;
  const auto of_causal = error(causal).abs();
  EXPECT_LT(of_causal.narrow(2, 0, 15).max().item().toDouble(), 1);
  EXPECT_GT(of_causal.select(2, 15).max().item().toDouble(), 1e20);

  Attention masked{causal.query, causal.key, value};
  masked.mask = at::zeros({1, 1, 16, 16}, value.options());
  masked.mask.select(-1, 15).fill_(-std::numeric_limits<double>::infinity());
  EXPECT_LT(error(masked).abs().max().item().toDouble(), 1);
}

TEST(RoundProbabilitiesTest, HeadsOfAGroupHaveTheSameKeys) {
  const auto key = numbers({1, 2, 24, 8}, 2);
  auto value = numbers({1, 2, 24, 4}, 3);
  value.select(1, 1).mul_(1e6);
  const Attention of{.query = numbers({1, 6, 10, 8}, 1), .key = key, .value = value, .grouped = true};
  const auto found = error(of).abs().amax({0, 2, 3});
  EXPECT_LT(found.narrow(0, 0, 3).max().item().toDouble(), 1);
  EXPECT_GT(found.narrow(0, 3, 3).min().item().toDouble(), 100);
}

// Six heads one by one, by twos and all at once, of operands that broadcast, with and without groups.
TEST(RoundProbabilitiesTest, PartsOfTheHeadsAreRoundedAsAllAre) {
  constexpr int64_t kHead = int64_t{24} * 24;
  const auto value = numbers({1, 2, 24, 4}, 3);
  const auto loud = value.clone();
  loud.select(1, 1).mul_(0x1p20);
  const Attention broadcasts{.query = numbers({3, 2, 10, 8}, 1),
                             .key = numbers({1, 2, 24, 8}, 2),
                             .value = loud,
                             .mask = numbers({3, 1, 1, 24}, 4)};
  const Attention groups{.query = numbers({1, 6, 10, 8}, 1),
                         .key = numbers({1, 2, 24, 8}, 2),
                         .value = loud,
                         .mask = numbers({6, 10, 24}, 4),
                         .grouped = true};
  for (const auto* of : {&broadcasts, &groups}) {
    for (const int64_t together : {int64_t{1}, 2 * kHead, 4 * kHead, 6 * kHead}) {
      auto exact = *of;
      exact.value = of->value.abs();
      const std::optional<at::Tensor> mask = of->mask;
      const auto most = at::scaled_dot_product_attention(exact.query, exact.key, exact.value, mask, 0.0,
                                                         false, std::nullopt, of->grouped)
                            .mul(0x1p-8);
      const auto found = error(*of, DType::kBF16, 5, together).abs();
      EXPECT_TRUE(found.le(most.add(1e-9)).all().item().toBool()) << together;
      EXPECT_GT(found.div(most).amax(std::vector<int64_t>{-1, -2}).min().item().toDouble(), 0.05) << together;
    }
  }
}

}  // namespace
}  // namespace nereid::replay
