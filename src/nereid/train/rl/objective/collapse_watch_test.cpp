#include "nereid/train/rl/objective/collapse_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RolloutFigures usual() {
  return {.entropy = 1,
          .length = 500,
          .kl = 0.01,
          .reward = 0.3,
          .groups_alike = 0.4,
          .cut_off = 0.05,
          .verdicts = {{"Verified", 3}, {"Mismatch", 7}},
          .rules = {}};
}

// The alarms after 10 usual steps and 40 of these.
std::vector<std::string> alarms(const RolloutFigures& later) {
  CollapseWatch watch;
  for (int i = 0; i < 10; ++i) EXPECT_THAT(watch.look(usual()), ElementsAre());
  std::vector<std::string> last;
  for (int i = 0; i < 40; ++i) last = watch.look(later);
  return last;
}

TEST(CollapseWatch, IsSilentWhileAllIsAsItWas) { EXPECT_THAT(alarms(usual()), ElementsAre()); }

TEST(CollapseWatch, SpeaksUp) {
  auto figures = usual();
  figures.entropy = 0.01;
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("nats a token, it began at 1")));
  figures = usual(), figures.length = 3000;
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("they began with 500")));
  figures = usual(), figures.length = 20;
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("they began with 500")));
  figures = usual(), figures.kl = 2;
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("KL is")));
  figures = usual(), figures.groups_alike = 1;
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("they teach nothing")));
  figures = usual(), figures.rules = {{"aten_compute", 6}, {"int_to_ptr", 1}};
  EXPECT_THAT(alarms(figures), ElementsAre(HasSubstr("break the rule aten_compute")));
}

TEST(CollapseWatch, OneStepSaysNothing) {
  CollapseWatch watch;
  for (int i = 0; i < 20; ++i) (void)watch.look(usual());
  auto figures = usual();
  figures.entropy = 0, figures.groups_alike = 1, figures.rules = {{"aten_compute", 10}};
  EXPECT_THAT(watch.look(figures), ElementsAre());
  EXPECT_THAT(watch.look(usual()), ElementsAre());
}

TEST(CollapseWatch, ReportsSharesOfVerdictsAndRules) {
  auto figures = usual();
  figures.rules = {{"aten_compute", 2}};
  const Figures metrics = CollapseWatch::metrics(figures);
  const std::map<std::string, double> named(metrics.begin(), metrics.end());
  EXPECT_DOUBLE_EQ(named.at("verdict/Verified"), 0.3);
  EXPECT_DOUBLE_EQ(named.at("verdict/Mismatch"), 0.7);
  EXPECT_DOUBLE_EQ(named.at("rule/aten_compute"), 0.2);
  EXPECT_DOUBLE_EQ(named.at("entropy"), 1);
}

}  // namespace
}  // namespace nereid::train
