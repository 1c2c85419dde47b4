#include "nereid/train/rl/objective/importance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nereid/train/rl/objective/objective.h"

namespace nereid::train {
namespace {

TEST(Importance, WeightsAreRatiosUpToTheLimit) {
  const std::vector<float> trainer = {-1.0F, -2.0F, -0.5F}, engine = {-1.0F, -1.0F, -3.0F};
  Mismatch mismatch;
  const auto weights = truncated_weights(trainer, engine, 2, mismatch);
  EXPECT_EQ(weights[0], 1.0F);
  EXPECT_FLOAT_EQ(weights[1], std::exp(-1.0F));
  EXPECT_EQ(weights[2], 2.0F);
  EXPECT_DOUBLE_EQ(mismatch.mean(), 3.5 / 3);
  EXPECT_DOUBLE_EQ(mismatch.most, 2.5);
  EXPECT_DOUBLE_EQ(mismatch.truncated_share(), 1.0 / 3);
  Mismatch more{.tokens = 1, .sum = 3, .most = 3, .truncated = 1};
  more.add(mismatch);
  EXPECT_DOUBLE_EQ(more.tokens, 4);
  EXPECT_DOUBLE_EQ(more.most, 3);
  EXPECT_DOUBLE_EQ(more.truncated_share(), 0.5);
}

TEST(Importance, AnExpectationUnderTheTrainersPolicyComesOutOfTheEnginesTokens) {
  // Two tokens: p = (0.6, 0.4), q = (0.5, 0.5). Weighted by p / q, q's mean gradient is p's.
  const std::vector<float> p = {std::log(0.6F), std::log(0.4F)}, q = {std::log(0.5F), std::log(0.5F)};
  Mismatch mismatch;
  const auto weights = truncated_weights(p, q, 2, mismatch);
  const double of_p = 0.6 * 3 + 0.4 * 7, of_q = 0.5 * weights[0] * 3 + 0.5 * weights[1] * 7;
  EXPECT_NEAR(of_p, of_q, 1e-6);
}

TEST(Importance, ObjectivesMultiplyGradientsAlone) {
  for (const auto kind : {ObjectiveSettings::Kind::kGrpo, ObjectiveSettings::Kind::kHrd,
                          ObjectiveSettings::Kind::kBest, ObjectiveSettings::Kind::kDrpo}) {
    std::vector<Rollout> rollouts(2);
    for (size_t i = 0; i < 2; ++i)
      rollouts[i] = {.log_probabilities = {-1, -2},
                     .old_log_probabilities = {-1, -2},
                     .plan_tokens = 1,
                     .judged = {.valid = true, .correct = i == 0, .speedup = 1.0}};
    // best copies one right answer next to a slower one.
    if (kind == ObjectiveSettings::Kind::kBest)
      rollouts[1].judged = {.valid = true, .correct = true, .speedup = 2.0};
    const std::vector<size_t> groups = {0, 2};
    const auto plain = evaluate_objective({.kind = kind}, rollouts, groups);
    rollouts[1].weights = {0.5F, 2};
    const auto weighted = evaluate_objective({.kind = kind}, rollouts, groups);
    EXPECT_EQ(weighted.loss, plain.loss);
    EXPECT_EQ(weighted.gradients[0], plain.gradients[0]);
    EXPECT_EQ(weighted.gradients[1][0], plain.gradients[1][0] * 0.5F);
    EXPECT_EQ(weighted.gradients[1][1], plain.gradients[1][1] * 2);
    EXPECT_NE(plain.gradients[1][1], 0);
  }
}

}  // namespace
}  // namespace nereid::train
