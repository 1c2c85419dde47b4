#include "nereid/train/rl/objective/curriculum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace nereid::train {
namespace {

using Way = CurriculumSettings::Kind;
using testing::ElementsAre;

TEST(Curriculum, LevelsAreGoneThroughByHeldOutPassRate) {
  Curriculum levels({.kind = Way::kLevels, .classes = 3, .promote_at = 0.8}, 1);
  EXPECT_THAT(levels.shares(), ElementsAre(1, 0, 0));
  EXPECT_FALSE(levels.looked(0, 0.79));
  EXPECT_FALSE(levels.looked(1, 0.95));  // not the one that is trained on
  EXPECT_TRUE(levels.looked(0, 0.8));
  EXPECT_THAT(levels.shares(), ElementsAre(0, 1, 0));
  EXPECT_EQ(levels.draw(), 1);
  EXPECT_FALSE(levels.looked(0, 1.0));
  EXPECT_TRUE(levels.looked(1, 1.0));
  EXPECT_FALSE(levels.looked(2, 1.0));  // there is none after it
  EXPECT_THAT(levels.shares(), ElementsAre(0, 0, 1));
}

TEST(Curriculum, AMixtureIsDrawnByItsShares) {
  Curriculum mixture({.kind = Way::kMixture, .classes = 4, .shares = {1, 0, 2, 5}}, 9);
  EXPECT_THAT(mixture.shares(), ElementsAre(0.125, 0, 0.25, 0.625));
  std::vector<int> counts(4);
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(mixture.draw())];
  EXPECT_EQ(counts[1], 0);
  double chi_square = 0;
  for (const size_t c : {0, 2, 3}) {
    const double expected = kDraws * mixture.shares()[c];
    chi_square += (counts[c] - expected) * (counts[c] - expected) / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // 2 degrees of freedom, 0.1 %
}

TEST(Curriculum, ALearntOneGoesWhereRewardsChange) {
  Curriculum learnt({.kind = Way::kLearnt, .classes = 4, .min_share = 0.2, .memory = 100}, 2);
  EXPECT_THAT(learnt.shares(), testing::Each(testing::DoubleNear(0.25, 1e-12)));  // nothing is known
  for (int i = 0; i < 400; ++i) {
    learnt.rewarded(0, 1);                // can do it
    learnt.rewarded(1, 0);                // cannot
    learnt.rewarded(2, i < 350 ? 0 : 1);  // has just learnt it
  }
  const auto shares = learnt.shares();
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
  EXPECT_NEAR(shares[0], 0.05, 1e-12);
  EXPECT_NEAR(shares[1], 0.05, 1e-12);
  EXPECT_GT(shares[2], 0.15);
  EXPECT_GT(shares[3], shares[2]);  // never tried
  for (int i = 0; i < 600; ++i) learnt.rewarded(2, 1), learnt.rewarded(3, 0);
  EXPECT_LT(learnt.shares()[3], 0.1);
  EXPECT_GE(learnt.shares()[2], 0.05);
}

TEST(Curriculum, GoesOnFromItsState) {
  for (const Way kind : {Way::kLevels, Way::kMixture, Way::kLearnt}) {
    const CurriculumSettings settings{.kind = kind, .classes = 3, .promote_at = 0.5, .shares = {1, 1, 1}};
    Curriculum whole(settings, 4);
    for (int i = 0; i < 50; ++i) whole.rewarded(whole.draw(), i % 3 == 0);
    whole.looked(0, 0.6);
    Curriculum resumed(settings, 4);
    const auto restored = resumed.restore(Json::parse(whole.state().dump()), "state");
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    for (int i = 0; i < 50; ++i) {
      const int64_t drawn = whole.draw();
      EXPECT_EQ(resumed.draw(), drawn);
      whole.rewarded(drawn, i % 2), resumed.rewarded(drawn, i % 2);
    }
    EXPECT_EQ(resumed.state(), whole.state());
  }
  Curriculum two({.classes = 2}, 1);
  EXPECT_THAT(two.restore(Curriculum({.classes = 3}, 1).state(), "state").error().message,
              testing::HasSubstr("state.classes: "));
  EXPECT_EQ(two.restore({{"level", 5}}, "state").error().message,
            "state.level: expected an integer from 0 to 1, got 5");
}

}  // namespace
}  // namespace nereid::train
