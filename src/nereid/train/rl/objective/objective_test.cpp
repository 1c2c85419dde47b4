#include "nereid/train/rl/objective/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace nereid::train {
namespace {

using By = ObjectiveSettings::Kind;

TEST(Advantages, OfTheThreeBaselines) {
  const std::vector<double> rewards{1, 0, 0, 1, 1};  // mean 0.6, squares 1.2
  EXPECT_THAT(advantages(rewards, Baseline::kMean),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.4, -0.6, -0.6, 0.4, 0.4}));
  EXPECT_THAT(advantages(rewards, Baseline::kLeaveOneOut),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.5, -0.75, -0.75, 0.5, 0.5}));
  const double deviation = std::sqrt(1.2 / 4) + 1e-6;
  EXPECT_THAT(
      advantages(rewards, Baseline::kNormalized),
      testing::Pointwise(testing::DoubleNear(1e-12), {0.4 / deviation, -0.6 / deviation, -0.6 / deviation,
                                                      0.4 / deviation, 0.4 / deviation}));
}

TEST(Advantages, AreZeroWhereNothingIsToBeChosen) {
  for (const Baseline baseline : {Baseline::kMean, Baseline::kLeaveOneOut, Baseline::kNormalized}) {
    EXPECT_THAT(advantages(std::vector<double>{0.1, 0.1, 0.1}, baseline), testing::Each(0.0));
    EXPECT_THAT(advantages(std::vector<double>{7}, baseline), testing::ElementsAre(0.0));
    EXPECT_TRUE(advantages(std::vector<double>{}, baseline).empty());
  }
}

// The baseline without oneself: by its own words.
TEST(Advantages, LeaveOneOutIsTheMeanOfTheOthers) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> rewards(2 + random() % 9);
    for (double& reward : rewards) reward = static_cast<double>(random() % 1000) / 250;
    const auto found = advantages(rewards, Baseline::kLeaveOneOut);
    for (size_t i = 0; i < rewards.size(); ++i) {
      double others = 0;
      for (size_t j = 0; j < rewards.size(); ++j) others += j == i ? 0 : rewards[j];
      EXPECT_NEAR(found[i], rewards[i] - others / static_cast<double>(rewards.size() - 1), 1e-12);
    }
  }
}

TEST(Rewards, AreProductsOfTheFactors) {
  for (const bool valid : {false, true})
    for (const bool correct : {false, true}) {
      const Judged judged{.valid = valid, .correct = correct, .speedup = 1.5};
      EXPECT_EQ(binary_reward(judged), valid && correct ? 1 : 0);
      EXPECT_EQ(split_reward(judged).code, valid && correct ? 1 : 0);
      EXPECT_EQ(split_reward(judged).plan, valid && correct ? 1.5 : 0);
    }
  EXPECT_EQ(split_reward({.valid = true, .correct = true, .speedup = 9}).plan, 2);
  EXPECT_EQ(split_reward({.valid = true, .correct = true, .speedup = 9}, 10).plan, 9);
}

TEST(Rewards, OfLogSpeedAreRelativeToTheRightOnesMean) {
  const auto right = [](double speedup) {
    return Judged{.valid = true, .correct = true, .speedup = speedup};
  };
  const Judged wrong{.valid = true}, against_a_rule{.correct = true, .speedup = 9};
  const double root = std::log(2.0) / 2;
  EXPECT_THAT(log_speed_rewards(std::vector{right(1), wrong, right(2), against_a_rule}, 4, 0.3),
              testing::Pointwise(testing::DoubleNear(1e-12), {-root, -0.3, root, -0.3}));
  EXPECT_THAT(log_speed_rewards(std::vector{right(1), right(100)}, 2, 0.3),
              testing::Pointwise(testing::DoubleNear(1e-12), {-std::log(2.0), std::log(2.0)}));
  EXPECT_THAT(log_speed_rewards(std::vector{wrong, wrong}, 2, 0.3), testing::Each(0.0));
}

TEST(Advantages, OfTheBestAreOfWhatIsFasterThanTheRightOnesMean) {
  const auto right = [](double speedup) {
    return Judged{.valid = true, .correct = true, .speedup = speedup};
  };
  const Judged wrong{.valid = true}, against_a_rule{.correct = true, .speedup = 9};
  EXPECT_THAT(best_advantages(std::vector{right(1), wrong, right(2), against_a_rule}, 4),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.0, 0.0, std::log(2.0) / 2, 0.0}));
  EXPECT_THAT(best_advantages(std::vector{right(1), right(100)}, 2),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.0, std::log(2.0)}));
  EXPECT_THAT(best_advantages(std::vector{right(3), wrong}, 2), testing::Each(0.0));
  EXPECT_THAT(best_advantages(std::vector{right(1.1), right(1.1), right(1.1)}, 2), testing::Each(0.0));
  EXPECT_THAT(best_advantages(std::vector{wrong, wrong}, 2), testing::Each(0.0));
  // With a price what is wrong is pushed away where one is right; what is slow is not.
  EXPECT_THAT(best_advantages(std::vector{right(1), wrong, right(2), against_a_rule}, 4, 0.1),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.0, -0.1, std::log(2.0) / 2, -0.1}));
  EXPECT_THAT(best_advantages(std::vector{right(3), wrong}, 2, 0.1), testing::ElementsAre(0.0, -0.1));
  EXPECT_THAT(best_advantages(std::vector{wrong, wrong}, 2, 0.1), testing::Each(0.0));
}

TEST(Advantages, OfPlansAreRelativeToTheGroup) {
  const auto right = [](double speedup) {
    return Judged{.valid = true, .correct = true, .speedup = speedup};
  };
  const Judged wrong{.valid = true};
  // Rewards -0.5, 0.5, -0.6: less their mean, -0.2.
  EXPECT_THAT(centred_speed_advantages(std::vector{right(1), right(std::exp(1.0)), wrong}, 4, 0.6),
              testing::Pointwise(testing::DoubleNear(1e-12), {-0.3, 0.7, -0.4}));
  EXPECT_THAT(centred_speed_advantages(std::vector{right(3), wrong}, 4, 0.6),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.3, -0.3}));
  EXPECT_THAT(centred_speed_advantages(std::vector{wrong, wrong}, 4, 0.6), testing::Each(0.0));
  EXPECT_THAT(centred_speed_advantages(std::vector{right(1.1), right(1.1), right(1.1)}, 4, 0.6),
              testing::Each(0.0));
}

// A plan is judged by its speed, code by being right, unless both have one reward.
TEST(Rewards, PlanAndCodeAreJudgedApart) {
  const std::vector<Judged> group{{.valid = true, .correct = true, .speedup = 1}, {.valid = true}};
  ObjectiveSettings settings{.kind = By::kHrd, .incorrect_penalty = 0.3};
  EXPECT_THAT(plan_rewards(settings, group), testing::ElementsAre(0, -0.3));
  EXPECT_THAT(code_rewards(settings, group), testing::ElementsAre(1, 0));
  settings.uniform_reward = true;
  EXPECT_EQ(code_rewards(settings, group), plan_rewards(settings, group));
  settings.kind = By::kGrpo;
  EXPECT_THAT(plan_rewards(settings, group), testing::ElementsAre(1, 0));
}

std::vector<Rollout> drawn(uint32_t seed, size_t count, double apart) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<Rollout> rollouts(count);
  for (Rollout& rollout : rollouts) {
    const size_t length = random() % 12;
    for (size_t t = 0; t < length; ++t) {
      rollout.log_probabilities.push_back(-3 * unit(random));
      rollout.old_log_probabilities.push_back(rollout.log_probabilities.back() +
                                              static_cast<float>(apart) * (unit(random) - 0.5F));
    }
    rollout.plan_tokens = length == 0 ? 0 : random() % (length + 1);
    rollout.judged = {
        .valid = random() % 4 != 0, .correct = random() % 2 != 0, .speedup = 0.2 + 3 * unit(random)};
  }
  return rollouts;
}

// Every gradient is the loss's slope, unless the token is just at a bound of the clipping, or of the KL.
TEST(Objective, GradientsAreSlopes) {
  for (const By kind : {By::kGrpo, By::kHrd, By::kBest, By::kDrpo})
    for (const Baseline baseline : {Baseline::kNormalized, Baseline::kMean, Baseline::kLeaveOneOut})
      for (uint32_t seed = 0; seed < 10; ++seed) {
        auto rollouts = drawn(seed, 9, 0.8);
        const std::vector<size_t> groups{0, 4, 4, 9};
        const ObjectiveSettings settings{
            .kind = kind,
            .baseline = baseline,
            .incorrect_penalty = seed % 2 == 0 ? std::optional<double>() : 0.3,
            .plan_incorrect_penalty = seed % 3 == 0 ? std::optional<double>() : 0.4,
            .beta = 3,
            .delta = 1e-3};
        const auto value = evaluate_objective(settings, rollouts, groups);
        for (size_t i = 0; i < rollouts.size(); ++i)
          for (size_t t = 0; t < rollouts[i].log_probabilities.size(); ++t) {
            const float before = rollouts[i].log_probabilities[t], by = 1.0F / 1024;
            rollouts[i].log_probabilities[t] = before + by;
            const double above = evaluate_objective(settings, rollouts, groups).loss;
            rollouts[i].log_probabilities[t] = before - by;
            const double below = evaluate_objective(settings, rollouts, groups).loss;
            rollouts[i].log_probabilities[t] = before;
            const double ratio = std::exp(double{before} - double{rollouts[i].old_log_probabilities[t]});
            if (std::abs(ratio - 0.8) < 2e-3 || std::abs(ratio - 1.2) < 2e-3) continue;
            EXPECT_NEAR(value.gradients[i][t], (above - below) / (2 * double{by}), 2e-5)
                << static_cast<int>(kind) << " " << seed;
          }
      }
}

TEST(Objective, OnTheOldPolicyNothingIsClippedAndThereIsNoKl) {
  auto rollouts = drawn(3, 6, 0);
  for (const By kind : {By::kGrpo, By::kHrd, By::kBest, By::kDrpo}) {
    const auto value = evaluate_objective({.kind = kind}, rollouts, std::vector<size_t>{0, 6});
    EXPECT_EQ(value.kl, 0);
    EXPECT_EQ(value.clipped_share, 0);
  }
}

TEST(Objective, ClippingTakesGradientsOnlyWhereTheRatioHasGoneFarEnough) {
  Rollout good{.log_probabilities = {0, 0, 0},
               .old_log_probabilities = {-1, 0, 1},
               .plan_tokens = 0,
               .judged = {true, true, 1}};
  Rollout bad = good;
  bad.judged.correct = false;
  const auto value = evaluate_objective({.baseline = Baseline::kMean}, std::vector<Rollout>{good, bad},
                                        std::vector<size_t>{0, 2});
  EXPECT_EQ(value.gradients[0][0], 0);  // more likely than 1.2 times already
  EXPECT_LT(value.gradients[0][1], 0);
  EXPECT_LT(value.gradients[0][2], 0);  // less likely, and should be more
  EXPECT_GT(value.gradients[1][0], 0);
  EXPECT_EQ(value.gradients[1][2], 0);  // less likely than 0.8 times already
  EXPECT_NEAR(value.clipped_share, 2.0 / 6, 1e-12);
}

TEST(Objective, HrdSeparatesPlanAndCode) {
  // Both are correct: the code has nothing to learn, the plan what is faster.
  const Rollout slow{.log_probabilities = {-1, -1, -1},
                     .old_log_probabilities = {-1, -1, -1},
                     .plan_tokens = 1,
                     .judged = {true, true, 0.5}};
  Rollout fast = slow;
  fast.judged.speedup = 1.5;
  const auto value = evaluate_objective({.kind = By::kHrd, .baseline = Baseline::kMean},
                                        std::vector<Rollout>{slow, fast}, std::vector<size_t>{0, 2});
  EXPECT_NEAR(value.gradients[0][0], 0.1 * 0.5 / 2,
              1e-7);  // alpha * 0.5 below the mean, of two tokens of plans
  EXPECT_NEAR(value.gradients[1][0], -0.1 * 0.5 / 2, 1e-7);
  for (const size_t token : {1, 2}) EXPECT_EQ(value.gradients[0][token], 0);
}

TEST(Objective, AUniformRewardIsThePlansForAllTokens) {
  std::vector<Rollout> rollouts;
  for (const double speedup : {2.0, 0.5}) {
    const std::vector<float> scores{-1, -1, -1, -1};
    rollouts.push_back({.log_probabilities = scores,
                        .old_log_probabilities = scores,
                        .plan_tokens = 2,
                        .judged = {.valid = true, .correct = true, .speedup = speedup}});
  }
  const std::vector<size_t> groups{0, 2};
  ObjectiveSettings settings{.kind = By::kHrd, .baseline = Baseline::kMean, .alpha = 0.1};
  // Both are correct: apart, the code's tokens learn nothing.
  EXPECT_THAT(evaluate_objective(settings, rollouts, groups).gradients[0],
              testing::Pointwise(testing::FloatNear(1e-7F), {-0.01875F, -0.01875F, 0.0F, 0.0F}));
  // Advantages 0.75 and -0.75; 0.1 / 4 a token of plans, 1 / 4 of code.
  settings.uniform_reward = true;
  EXPECT_THAT(evaluate_objective(settings, rollouts, groups).gradients[0],
              testing::Pointwise(testing::FloatNear(1e-7F), {-0.01875F, -0.01875F, -0.1875F, -0.1875F}));
}

// Slow and wrong ones are left alone, all tokens of the fastest are copied, each group's by how much faster
// it was.
TEST(Objective, BestCopiesWhatWasRightAndFast) {
  const auto rollout = [](bool correct, double speedup, size_t length) {
    const std::vector<float> scores(length, -1);
    return Rollout{.log_probabilities = scores,
                   .old_log_probabilities = scores,
                   .plan_tokens = 1,
                   .judged = {.valid = true, .correct = correct, .speedup = speedup}};
  };
  const double e = std::exp(0.1);
  const std::vector<Rollout> rollouts{rollout(true, e * e, 2), rollout(true, 1, 3), rollout(false, 9, 3),
                                      rollout(true, 1, 4),     rollout(true, e, 4), rollout(true, 7, 5)};
  const auto value = evaluate_objective({.kind = By::kBest}, rollouts, std::vector<size_t>{0, 3, 5, 6});
  const double weights = 0.1 * 2 + 0.05 * 4;
  EXPECT_NEAR(value.loss, -1, 1e-9);
  EXPECT_THAT(value.gradients[0],
              testing::Each(testing::FloatNear(static_cast<float>(-0.1 / weights), 1e-6F)));
  EXPECT_THAT(value.gradients[4],
              testing::Each(testing::FloatNear(static_cast<float>(-0.05 / weights), 1e-6F)));
  for (const size_t i : {1, 2, 3, 5}) EXPECT_THAT(value.gradients[i], testing::Each(0.0F)) << i;
  const auto priced = evaluate_objective({.kind = By::kBest, .incorrect_penalty = 0.2}, rollouts,
                                         std::vector<size_t>{0, 3, 5, 6});
  const double all = weights + 0.2 * 3;
  EXPECT_NEAR(priced.loss, -(weights - 0.2 * 3) / all, 1e-9);
  EXPECT_THAT(priced.gradients[0], testing::Each(testing::FloatNear(static_cast<float>(-0.1 / all), 1e-6F)));
  EXPECT_THAT(priced.gradients[2], testing::Each(testing::FloatNear(static_cast<float>(0.2 / all), 1e-6F)));
  for (const size_t i : {1, 3, 5}) EXPECT_THAT(priced.gradients[i], testing::Each(0.0F)) << i;
}

// A plan is pushed away for being wrong, or slow; the code after it is left as it is.
TEST(Objective, BestMayPushPlansApartFromCodes) {
  const auto rollout = [](bool correct, double speedup) {
    return Rollout{.log_probabilities = {-1, -1, -1},
                   .old_log_probabilities = {-1, -1, -1},
                   .plan_tokens = 1,
                   .judged = {.valid = true, .correct = correct, .speedup = speedup}};
  };
  const std::vector<Rollout> rollouts{rollout(true, 1), rollout(true, std::exp(0.4)), rollout(false, 9)};
  const auto value = evaluate_objective({.kind = By::kBest, .plan_incorrect_penalty = 0.6}, rollouts,
                                        std::vector<size_t>{0, 3});
  // Plans' rewards -0.2, 0.2, -0.6, their mean -0.2; of the codes only the second's two tokens are copied, by
  // 0.2.
  const double all = 0.4 + 0.4 + 2 * 0.2;
  const auto pushed = [&](double plan, double code) {
    return testing::Pointwise(
        testing::FloatNear(1e-6F),
        {static_cast<float>(-plan / all), static_cast<float>(-code / all), static_cast<float>(-code / all)});
  };
  EXPECT_THAT(value.gradients[0], pushed(0, 0));
  EXPECT_THAT(value.gradients[1], pushed(0.4, 0.2));
  EXPECT_THAT(value.gradients[2], pushed(-0.4, 0));
}

TEST(Objective, DrpoLeavesGroupsWithoutACorrectOneAlone) {
  auto rollouts = drawn(5, 4, 0);
  for (Rollout& rollout : rollouts) rollout.judged.correct = false;
  const auto value = evaluate_objective({.kind = By::kDrpo}, rollouts, std::vector<size_t>{0, 4});
  EXPECT_EQ(value.loss, 0);
  for (const auto& gradients : value.gradients) EXPECT_THAT(gradients, testing::Each(0.0F));
  EXPECT_EQ(evaluate_objective({.kind = By::kBest}, rollouts, std::vector<size_t>{0, 4}).loss, 0);
}

TEST(Objective, OfNothingIsNothing) {
  const auto value = evaluate_objective({}, std::vector<Rollout>(3), std::vector<size_t>{0, 3});
  EXPECT_EQ(value.loss, 0);
  EXPECT_EQ(value.gradients.size(), 3u);
}

}  // namespace
}  // namespace nereid::train
