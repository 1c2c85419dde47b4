// A session timed with workers that follow a script: no GPU, no processes.
#include "nereid/replay/host/timed_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nereid/base/json.h"
#include "nereid/replay/known_reference.h"

namespace nereid::replay {
namespace {

// What the two workers answer, and what they were asked for.
struct Script {
  GpuGate gate;
  GpuUse use;
  double reference_seconds = 20e-6, candidate_seconds = 10e-6;
  std::map<InputDistribution, double> candidate_on = {};   // other seconds on this kind
  std::string reference_graph = "", candidate_graph = "";  // why there is none
  std::string candidate_fails_at = "";                     // a verb
  InputDistribution wrong_while_timed =
      InputDistribution::kNans;  // on this kind, what the timed run gave is wrong

  int mattered = 0;  // of 64 elements of an input of 1 GB
  InputDistribution kind = InputDistribution::kOwn;
  std::vector<std::string> asked = {}, asked_of_reference = {};
  bool failed = false;

  TimedSides sides() {
    TimedSides sides;
    sides.trial = [this](const Trial& trial) -> Result<TrialReport> {
      const auto pass = gate.share();  // hangs where the GPU is held alone meanwhile
      kind = trial.distribution;
      asked.push_back("trial");
      return agreeing(trial, true);
    };
    sides.replay = [this](const Trial& trial) -> Result<TrialReport> {
      kind = trial.distribution;
      asked.push_back("replay");
      use.waited += 1;
      TrialReport report;
      report.trial = trial;
      if (candidate_fails_at == "replay")
        report.failed = Failure{Failure::Kind::kCrashed, {}, "as the script says"};
      return report;
    };
    sides.again = [this](const Json&) -> Result<TrialReport> {
      asked.push_back("again");
      return agreeing({.distribution = kind}, true);
    };
    sides.judge = [this]() -> Result<TrialReport> {
      const auto pass = gate.share();
      asked.push_back("judge");
      return agreeing({.distribution = kind}, kind != wrong_while_timed);
    };
    sides.failed = [this] {
      TrialReport report;
      report.failed = Failure{Failure::Kind::kCrashed, {}, "as the script says"};
      return report;
    };
    sides.request_reference = [this](const Json& request) {
      asked_of_reference.push_back(request.at("do").get<std::string>());
      return answer(request, reference_seconds, reference_graph);
    };
    sides.request_candidate = [this](const Json& request) -> Result<std::optional<Json>> {
      if (request.at("do").get<std::string>() == candidate_fails_at) return std::optional<Json>();
      const auto other = candidate_on.find(kind);
      return answer(request, other == candidate_on.end() ? candidate_seconds : other->second,
                    candidate_graph);
    };
    sides.device = "NVIDIA H200";
    sides.gate = &gate;
    sides.use = &use;
    return sides;
  }

  static TrialReport agreeing(const Trial& trial, bool agrees) {
    TrialReport report;
    report.trial = trial;
    report.comparison = Comparison{};
    report.comparison->agrees = agrees;
    return report;
  }

  Result<std::optional<Json>> answer(const Json& request, double seconds, const std::string& graph) {
    const auto verb = request.at("do").get<std::string>();
    asked.push_back(verb);
    Json document = Json::object();
    if (verb == "time_begin") document["graph"] = graph, document["input_sets"] = 3;
    if (verb == "needs")
      document["inputs"] = Json::array({{{"bytes", 1000000000}, {"tried", 64}, {"mattered", mattered}}});
    if (verb == "time") {
      Json samples = Json::array();
      for (int i = 0; i < request.at("count").get<int>(); ++i) samples.push_back(seconds * (1 + 1e-3 * i));
      document["samples"] = std::move(samples);
    }
    if (verb == "choose") {
      Json chosen = Json::array();
      chosen.push_back(Json::array({0, 2}));
      document["alternatives"] = std::move(chosen);
      document["timed"] = 3;
    }
    return std::optional<Json>(std::move(document));
  }
};

TimeReport timed(Script& script, TimeRequest request = {.seed = 1, .seconds = 0.05}, bool choose = false) {
  auto sides = script.sides();
  sides.must_choose = choose;
  auto report = time_sides(sides, request, Deadline::after(60));
  EXPECT_TRUE(report.ok()) << report.error().message;
  return report.ok() ? *report : TimeReport{};
}

TEST(TimedSessionTest, MediansAndTheirRatioAreReported) {
  Script script;
  const auto report = timed(script);
  EXPECT_FALSE(report.spoiled);
  EXPECT_EQ(report.method, "graph");
  EXPECT_NEAR(report.counted.speedup, 2, 0.01);
  EXPECT_NEAR(report.counted.candidate_ms, 0.010, 1e-4);
  EXPECT_TRUE(report.counted.converged);
  EXPECT_EQ(report.kinds.size(), TimeRequest{}.kinds.size());
  EXPECT_EQ(report.input_sets, 3);
  EXPECT_GT(report.candidate_launches_ms, 0);
  EXPECT_EQ(std::ranges::count(script.asked, "judge"), 4);  // a timed run of each kind is judged
  EXPECT_EQ(std::ranges::count(script.asked, "choose"), 0);
  for (const char* phase : {"trial", "capture", "wait", "samples", "judge"})
    EXPECT_TRUE(report.spent.contains(phase)) << phase;
}

TEST(TimedSessionTest, TheSlowestKindCounts) {
  Script script;
  script.candidate_on[InputDistribution::kHuge] = 15e-6;
  const auto report = timed(script);
  EXPECT_EQ(report.counted.kind, InputDistribution::kHuge);
  EXPECT_NEAR(report.counted.candidate_ms, 0.015, 1e-4);
}

TEST(TimedSessionTest, BothAreLaunchedWhereOneCannotBeCaptured) {
  Script script;
  script.reference_graph = "it waits for the GPU";
  const auto report = timed(script);
  EXPECT_EQ(report.method, "launches");
  EXPECT_EQ(report.not_captured, "the reference: it waits for the GPU");
}

TEST(TimedSessionTest, AReferenceWhoseTimeIsKnownIsNotTimedAgain) {
  const TimeRequest request{.seed = 1,
                            .seconds = 0.05,
                            .kinds = {InputDistribution::kOwn},
                            .reference = std::make_shared<KnownReference>(),
                            .graphs_alone = true};
  request.reference->keep_ms(InputDistribution::kOwn, 0.030);
  Script script;
  const auto report = timed(script, request);
  EXPECT_EQ(report.method, "graph");
  EXPECT_NEAR(report.counted.reference_ms, 0.030, 1e-9);
  EXPECT_NEAR(report.counted.speedup, 3, 0.03);
  EXPECT_EQ(report.candidate_launches_ms, 0);
  EXPECT_THAT(script.asked_of_reference, testing::IsEmpty());
  EXPECT_EQ(std::ranges::count(script.asked, "judge"), 1);  // timed runs are judged all the same
  // What is known is a graph's time: it says nothing of a candidate that is none.
  Script launched;
  launched.candidate_graph = "it waits for the GPU";
  const auto other = timed(launched, request);
  EXPECT_EQ(other.method, "launches");
  EXPECT_NEAR(other.counted.speedup, 2, 0.01);
  EXPECT_THAT(launched.asked_of_reference, testing::Contains("time"));
  EXPECT_EQ(request.reference->ms(InputDistribution::kOwn), 0.030) << "of launches nothing is kept";
}

TEST(TimedSessionTest, TheFirstTimeOfAReferenceCountsForAll) {
  TimeRequest request{.seed = 1,
                      .seconds = 0.05,
                      .kinds = {InputDistribution::kOwn},
                      .reference = std::make_shared<KnownReference>()};
  Script first;
  EXPECT_NEAR(timed(first, request).counted.speedup, 2, 0.01);
  EXPECT_NEAR(*request.reference->ms(InputDistribution::kOwn), 0.020, 1e-4);
  Script second;
  second.reference_seconds = 1;
  EXPECT_NEAR(timed(second, request).counted.speedup, 2, 0.01);
  // Two at once: what one finds while the other waits to be alone holds for both.
  request.reference = std::make_shared<KnownReference>();
  Script late;
  auto sides = late.sides();
  const auto ask = sides.request_reference;
  sides.request_reference = [&](const Json& what) {
    EXPECT_EQ(what.at("do"), "time_begin");
    request.reference->keep_ms(InputDistribution::kOwn, 0.030);
    return ask(what);
  };
  const auto report = time_sides(sides, request, Deadline::after(60));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_NEAR(report->counted.speedup, 3, 0.03);
}

TEST(TimedSessionTest, WhatIsComparedOnceIsWhatATimedRunGave) {
  const TimeRequest request{.seed = 1, .seconds = 0.05, .compare_once = true};
  Script script;
  const auto report = timed(script, request);
  EXPECT_EQ(report.kinds.size(), TimeRequest{}.kinds.size());
  EXPECT_EQ(std::ranges::count(script.asked, "trial"), 0);
  EXPECT_EQ(std::ranges::count(script.asked, "replay"), 4);
  EXPECT_EQ(std::ranges::count(script.asked, "judge"), 4);
  EXPECT_GE(report.spent.at("wait"), 4) << "seconds of waiting are counted separately";
  Script wrong;
  wrong.wrong_while_timed = InputDistribution::kOutliers;
  const auto spoiled = timed(wrong, request);
  ASSERT_TRUE(spoiled.spoiled);
  EXPECT_EQ(spoiled.spoiled->trial.distribution, InputDistribution::kOutliers);
  Script failing;
  failing.candidate_fails_at = "replay";
  const auto failed = timed(failing, request);
  ASSERT_TRUE(failed.spoiled);
  EXPECT_EQ(failed.spoiled->failed->message, "as the script says");
  EXPECT_THAT(failing.asked, testing::Not(testing::Contains("time_begin")));
}

TEST(TimedSessionTest, AWiderIntervalTakesFewerSamples) {
  const auto samples = [](double width) {
    Script script;
    auto sides = script.sides();
    const auto ask = sides.request_candidate;
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> noise(0, 0.05);
    sides.request_candidate = [&](const Json& what) {
      auto answer = ask(what);
      if (what.at("do") == "time")
        for (auto& sample : (**answer)["samples"]) sample = 10e-6 * noise(random);
      return answer;
    };
    TimeRequest request{.seed = 1,
                        .seconds = 20,
                        .kinds = {InputDistribution::kOwn},
                        .reference = std::make_shared<KnownReference>(),
                        .graphs_alone = true,
                        .relative_width = width};
    request.reference->keep_ms(InputDistribution::kOwn, 0.020);
    const auto report = time_sides(sides, request, Deadline::after(60));
    EXPECT_TRUE(report.ok() && report->counted.converged);
    EXPECT_NEAR(report->counted.speedup, 2, 2 * width);
    return report->counted.samples;
  };
  const int wide = samples(0.04), narrow = samples(0.02);
  EXPECT_LT(2 * wide, narrow);
}

TEST(TimedSessionTest, WhatWasChosenIsJudgedBeforeItIsTimed) {
  Script script;
  const auto report = timed(script, {.seed = 1, .seconds = 0.05}, true);
  EXPECT_EQ(report.alternatives, (std::vector<std::pair<int, int>>{{0, 2}}));
  EXPECT_EQ(report.alternatives_timed, 3);
  const auto at = [&](const char* what) { return std::ranges::find(script.asked, what); };
  EXPECT_LT(at("choose"), at("again"));
  EXPECT_LT(at("again"), at("time_begin"));
}

TEST(TimedSessionTest, AWrongTimedRunSpoilsIt) {
  Script script;
  script.wrong_while_timed = InputDistribution::kOutliers;
  const auto report = timed(script);
  ASSERT_TRUE(report.spoiled);
  EXPECT_EQ(report.spoiled->trial.distribution, InputDistribution::kOutliers);
}

TEST(TimedSessionTest, ACandidateThatFailsWhileTimedSpoilsIt) {
  for (const char* verb : {"time_begin", "time", "time_end"}) {
    Script script;
    script.candidate_fails_at = verb;
    const auto report = timed(script);
    ASSERT_TRUE(report.spoiled) << verb;
    EXPECT_EQ(report.spoiled->failed->message, "as the script says");
  }
}

TEST(TimedSessionTest, ATimeBelowTheRooflineIsImpossible) {
  Script script;
  auto sides = script.sides();
  TimeRequest request{.seed = 1, .seconds = 0.05};
  request.least.bytes_written = 1e9;  // 10 us for a gigabyte
  const auto report = time_sides(sides, request, Deadline::after(60));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_THAT(report->impossible, testing::HasSubstr("H200 needs to move the bytes counted"));
}

TEST(TimedSessionTest, InputsCountAsFarAsTheyMatter) {
  TimeRequest request{.seed = 1, .seconds = 0.05, .kinds = {InputDistribution::kOwn}};
  request.least.input_bytes = 1e9;  // 208 us on an H200
  const auto time = [&](double seconds, int mattered) {
    Script script;
    script.candidate_seconds = seconds, script.mattered = mattered;
    auto report = time_sides(script.sides(), request, Deadline::after(60));
    return std::pair(std::move(report), std::ranges::count(script.asked, "needs"));
  };
  const auto [slow, asked_of_slow] = time(200e-6, 64);
  ASSERT_TRUE(slow.ok()) << slow.error().message;
  EXPECT_EQ(asked_of_slow, 0) << "all of it could have been read: how much must be does not matter";
  const auto [some, asked_of_some] = time(100e-6, 32);
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(asked_of_some, 1);
  EXPECT_EQ(some->impossible, "");
  EXPECT_NEAR(some->counted.roofline_ms, 0.208 * 0.23, 0.208 * 0.02);
  const auto [impossible, asked_of_impossible] = time(100e-6, 64);
  ASSERT_TRUE(impossible.ok()) << impossible.error().message;
  EXPECT_THAT(impossible->impossible, testing::HasSubstr("H200 needs to move the bytes counted"));
  // One reference is queried once; an impossible time says nothing of it.
  request.reference = std::make_shared<KnownReference>();
  for (const int asked : {1, 0}) EXPECT_EQ(time(100e-6, 32).second, asked);
  EXPECT_TRUE(request.reference->ms(InputDistribution::kOwn));
  request.reference = std::make_shared<KnownReference>();
  EXPECT_NE(time(100e-6, 64).first->impossible, "");
  EXPECT_FALSE(request.reference->ms(InputDistribution::kOwn));
}

}  // namespace
}  // namespace nereid::replay
