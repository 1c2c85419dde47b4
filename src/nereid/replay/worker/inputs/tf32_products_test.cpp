#include "nereid/replay/worker/inputs/tf32_products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace nereid::replay {
namespace {

using Kind = Tf32Rounding::Kind;

at::Tensor drawn(std::vector<int64_t> sizes) {
  return at::rand(sizes, at::TensorOptions().dtype(c10::kDouble)).sub_(0.5);
}
double difference(const at::Tensor& a, const at::Tensor& b) { return a.sub(b).abs().max().item().toDouble(); }

class Tf32ProductsTest : public testing::TestWithParam<bool> {
 protected:
  Tf32ProductsTest() { at::manual_seed(1); }
  const c10::NoGradGuard no_grad_;
  at::Tensor cut(const at::Tensor& x) const { return rounded_to_tf32(x, GetParam()); }
  template <typename F>
  auto rounded(F body, Tf32Rounding::Kind kind, uint64_t draw = 0) const {
    const RoundedProducts rounding({kind, draw}, 7);
    return body();
  }
  Kind kind() const { return GetParam() ? Kind::kTruncated : Kind::kNearest; }
};

TEST_P(Tf32ProductsTest, StatesOfARecurrentLayerAreRoundedInEachStep) {
  constexpr int64_t kBatch = 3, kSteps = 5, kIn = 4, kUnits = 6;
  const auto x = drawn({kBatch, kSteps, kIn}), h0 = drawn({1, kBatch, kUnits}),
             c0 = drawn({1, kBatch, kUnits});
  const std::vector weights = {drawn({4 * kUnits, kIn}), drawn({4 * kUnits, kUnits}), drawn({4 * kUnits}),
                               drawn({4 * kUnits})};
  const auto layer = [&] {
    return std::get<0>(at::lstm(x, {h0, c0}, weights, true, 1, 0, false, false, true));
  };
  auto h = h0[0], c = c0[0];
  std::vector<at::Tensor> states;
  for (int64_t t = 0; t < kSteps; ++t) {
    const auto product = cut(x.select(1, t)).matmul(cut(weights[0]).t()) + cut(h).matmul(cut(weights[1]).t());
    const auto gates = (product + weights[2] + weights[3]).chunk(4, 1);
    c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
    states.push_back(h);
  }
  const auto expected = at::stack(states, 1);
  EXPECT_LT(difference(rounded(layer, kind()), expected), 1e-14);
  EXPECT_GT(difference(layer(), expected), 1e-6) << "no longer once it is over";
}

TEST_P(Tf32ProductsTest, ProbabilitiesOfAttentionAreRounded) {
  const auto q = drawn({1, 2, 5, 4}), k = drawn({1, 2, 7, 4}), v = drawn({1, 2, 7, 4});
  const auto made = rounded([&] { return at::scaled_dot_product_attention(q, k, v); }, kind());
  // PyTorch scales both factors by the root of the scale.
  const double root = std::sqrt(0.5);
  const auto scores = cut(q * root).matmul(cut(k * root).transpose(-1, -2));
  EXPECT_LT(difference(made, cut(scores.softmax(-1)).matmul(cut(v))), 1e-14);
}

INSTANTIATE_TEST_SUITE_P(Either, Tf32ProductsTest, testing::Bool());

TEST(Tf32RoundingTest, TheSecondOfTwoDrawsTruncatesWhatTheFirstRounds) {
  int others = 0;
  for (uint64_t factor = 0; factor < 64; ++factor) {
    for (uint64_t draw = 0; draw < 8; draw += 2)
      EXPECT_NE((Tf32Rounding{Kind::kMixed, draw}.truncates(factor)),
                (Tf32Rounding{Kind::kMixed, draw + 1}.truncates(factor)));
    others +=
        Tf32Rounding{Kind::kMixed, 0}.truncates(factor) != Tf32Rounding{Kind::kMixed, 2}.truncates(factor);
  }
  EXPECT_GT(others, 16);
  EXPECT_LT(others, 48);
}

}  // namespace
}  // namespace nereid::replay
