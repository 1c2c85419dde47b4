#include "nereid/verify/stages/configurations.h"

#include <gtest/gtest.h>

#include <set>

namespace nereid::verify {
namespace {

std::vector<TunedGroup> groups_of(const std::vector<std::pair<std::vector<int>, int>>& shapes) {
  std::vector<TunedGroup> groups;
  for (const auto& [steps, options] : shapes) {
    groups.push_back({.steps = steps, .options = {}});
    for (int i = 1; i <= options; ++i) groups.back().options.push_back({.index = i, .config = "C"});
  }
  return groups;
}

// A forward whose group g leaves `left(g, option)`, and which is right but for the choices in `wrong`.
struct Forward {
  std::vector<TunedGroup> groups;
  std::function<uint64_t(size_t, int)> left = [](size_t, int option) {
    return static_cast<uint64_t>(option);
  };
  std::function<bool(const OptionChoice&)> wrong = [](const OptionChoice&) { return false; };
  std::set<OptionChoice> ran{};

  bool found() {
    const auto done =
        run_configurations(groups, [&](const OptionChoice& choice, bool) -> Result<ConfigurationRun> {
          EXPECT_TRUE(ran.insert(choice).second) << "each choice is run once";
          if (wrong(choice)) return ConfigurationRun{ConfigurationRun::End::kStop};
          ConfigurationRun run;
          for (size_t g = 0; g < groups.size(); ++g)
            for (const int step : groups[g].steps) run.left[step] = left(g, choice[g]);
          return run;
        });
    EXPECT_TRUE(done.ok());
    return done->stopped;
  }
};

TEST(Configurations, OneGroupIsRunOptionByOption) {
  Forward forward{groups_of({{{0}, 5}})};
  EXPECT_FALSE(forward.found());
  EXPECT_EQ(forward.ran.size(), 5U);
}

TEST(Configurations, WhatLeavesTheSameIsNotCombined) {
  Forward forward{groups_of({{{0}, 4}, {{1}, 6}})};
  forward.left = [](size_t, int) { return uint64_t{7}; };
  EXPECT_FALSE(forward.found());
  EXPECT_EQ(forward.ran.size(), 1U + 4 + 6);
}

TEST(Configurations, APairThatIsWrongIsFound) {
  for (int a = 1; a <= 3; ++a)
    for (int b = 1; b <= 3; ++b) {
      Forward forward{groups_of({{{0}, 3}, {{1}, 2}, {{2}, 3}})};
      forward.wrong = [&](const OptionChoice& c) { return c[0] == a && c[2] == b; };
      EXPECT_TRUE(forward.found()) << a << ", " << b;
    }
}

TEST(Configurations, OneOfThoseThatLeaveTheSameStandsForThem) {
  Forward forward{groups_of({{{0}, 9}, {{1}, 4}})};
  forward.left = [](size_t g, int option) { return static_cast<uint64_t>(g == 0 ? option % 2 : option); };
  forward.wrong = [](const OptionChoice& c) { return c[0] % 2 == 1 && c[1] == 4; };
  EXPECT_TRUE(forward.found());
  Forward right{groups_of({{{0}, 9}, {{1}, 4}})};
  right.left = forward.left;
  EXPECT_FALSE(right.found());
  EXPECT_EQ(right.ran.size(), 1U + 9 + 4 + 4) << "one of the odd ones with each of the second group";
}

TEST(Configurations, ThreeTogetherAreFoundWhereThereAreFew) {
  Forward forward{groups_of({{{0}, 2}, {{1}, 2}, {{2}, 2}})};
  forward.wrong = [](const OptionChoice& c) { return c == OptionChoice{2, 1, 2}; };
  EXPECT_TRUE(forward.found());
}

TEST(Configurations, ALaterLaunchOfAGroupKeepsItsOptionsApart) {
  Forward forward{groups_of({{{0, 2}, 3}, {{1}, 2}})};
  forward.left = [](size_t, int) { return uint64_t{7}; };
  forward.wrong = [](const OptionChoice& c) { return c == OptionChoice{3, 2}; };
  EXPECT_TRUE(forward.found());
}

TEST(Configurations, OfManyGroupsEveryPairIsRunInFewRuns) {
  const auto shapes = std::vector<std::pair<std::vector<int>, int>>{{{0}, 5}, {{1}, 5}, {{2}, 5}, {{3}, 5},
                                                                    {{4}, 5}, {{5}, 5}, {{6}, 5}, {{7}, 5}};
  for (const auto& [first, second] : {std::pair<size_t, size_t>{0, 7}, {3, 4}, {6, 7}, {0, 1}})
    for (int option = 1; option <= 5; ++option) {
      Forward forward{groups_of(shapes)};
      const auto g = first, h = second;
      forward.wrong = [=](const OptionChoice& c) { return c[g] == option && c[h] == 6 - option; };
      EXPECT_TRUE(forward.found()) << first << ", " << second;
    }
  Forward right{groups_of(shapes)};
  EXPECT_FALSE(right.found());
  EXPECT_LT(right.ran.size(), 1000U);
}

TEST(Configurations, ChoicesAreOfAllLaunchesOfAGroup) {
  const auto groups = groups_of({{{0, 2}, 3}, {{1}, 2}});
  EXPECT_EQ(choices_of(groups, {2, 0}), (replay::Choices{{0, 2}, {2, 2}}));
  EXPECT_EQ(choices_of(groups, {0, 1}), (replay::Choices{{1, 1}}));
  EXPECT_EQ(describe_choice(groups, {1, 1}), "C with C");
}

// Two forwards of one tuned launch each, three alternatives of 4, 1 and 16 programs.
struct Tuned {
  trace::Trace trace;
  TraceAnalysis analysis;
  Tuned() {
    for (size_t k = 0; k < 3; ++k) trace.kernels.emplace_back().ttir = std::string(k, ' ');
    for (int call = 0; call < 2; ++call) {
      auto& phase = trace.phases.emplace_back();
      phase.kind = trace::PhaseKind::kForward, phase.call = call;
      phase.steps.emplace_back(launch());
    }
  }
  static trace::Launch launch() {
    trace::Launch launch;
    for (const int64_t programs : {4, 1, 16}) {
      auto& one = launch.alternatives.emplace_back();
      one.kernel = static_cast<int32_t>(launch.alternatives.size()) - 1, one.grid = {programs, 1, 1};
    }
    launch.tuner = 0;
    launch.tuning.emplace().runs.resize(3);
    return launch;
  }
  std::vector<replay::ConfiguredRun> runs() {
    analysis.trace = &trace;
    for (const auto& phase : trace.phases)
      analysis.phases.push_back({.kind = phase.kind, .call = phase.call});
    return tuning_runs(analysis, replay::Device::kCpu);
  }
};

TEST(Configurations, TheCallThatTunesMeasuresAllBeforeThreeChoices) {
  const auto runs = Tuned().runs();
  ASSERT_EQ(runs.size(), 3U);
  for (const auto& run : runs) EXPECT_EQ(run.tuned, (std::map<int, std::vector<int>>{{0, {0, 1, 2}}}));
  EXPECT_EQ(runs[0].choices, replay::Choices{});
  EXPECT_EQ(runs[1].choices, (replay::Choices{{0, 1}}));
  EXPECT_EQ(runs[2].choices, (replay::Choices{{0, 2}}));
}

TEST(Configurations, AnOddNumberOfRunsIsMeasured) {
  Tuned two;
  for (auto& phase : two.trace.phases) {
    auto& launch = std::get<trace::Launch>(phase.steps[0]);
    launch.alternatives.pop_back(), launch.tuning->runs.pop_back();
  }
  const auto runs = two.runs();
  ASSERT_EQ(runs.size(), 2U) << "the default has the largest grid";
  EXPECT_EQ(runs[0].tuned.at(0), (std::vector<int>{0, 1, 1}));
}

TEST(Configurations, WhatWasTunedElsewhereIsNotTunedInTheJudgedCall) {
  Tuned scratch;  // one launch more in the first call
  scratch.trace.phases[0].steps.emplace_back(Tuned::launch());
  EXPECT_TRUE(scratch.runs().empty());
  Tuned beforehand;
  for (auto& phase : beforehand.trace.phases) std::get<trace::Launch>(phase.steps[0]).tuning.reset();
  EXPECT_TRUE(beforehand.runs().empty());
}

}  // namespace
}  // namespace nereid::verify
