#include "nereid/replay/timed_session.h"

#include <gtest/gtest.h>

#include <set>

namespace nereid::replay {
namespace {

// Both sides of a session, with clocks of their own.
struct FakeSession {
  double reference_seconds = 2e-3, candidate_seconds = 1e-3;
  double candidate_seconds_on_outliers = 1e-3;
  std::string reference_graph, candidate_graph;  // why not captured
  Json chosen = Json::array();
  std::set<InputKind> inapplicable;
  bool timed_outputs_agree = true, trials_agree = true;
  int time_fails_after = -1;  // batches of the candidate's

  std::vector<std::string> log;
  GpuGate gate;
  InputKind kind{};
  int batches = 0;

  TrialReport report(bool agrees) const {
    TrialReport report;
    report.trial.kind = kind;
    report.comparison = Comparison{};
    report.comparison->agrees = agrees;
    return report;
  }
  Result<std::optional<Json>> answer(const char* side, const Json& request, double seconds,
                                     const std::string& graph) {
    const auto what = request.at("do").get<std::string>();
    log.push_back(fmt::format("{} {}", side, what));
    if (what == "choose") return std::optional<Json>({{"alternatives", chosen}, {"timed", chosen.size()}});
    if (what == "time_begin") return std::optional<Json>({{"graph", graph}});
    if (what != "time") return std::optional<Json>({{"ok", true}});
    if (side == std::string("c") && batches++ == time_fails_after) return std::optional<Json>();
    log.back() += " " + request.at("mode").get<std::string>();
    std::vector<double> samples;
    for (int i = 0; i < request.at("count").get<int>(); ++i)
      samples.push_back(seconds * (1 + 1e-3 * (i % 3)));
    return std::optional<Json>({{"samples", samples}});
  }
  Result<TimeReport> time(const TimeRequest& request, const std::string& device = "NVIDIA H200") {
    TimedSides sides;
    sides.trial = [&](const Trial& trial) -> Result<TrialReport> {
      kind = trial.kind;
      log.push_back("trial " + std::string(to_string(kind)));
      TrialReport ran = report(trials_agree);
      ran.applicable = !inapplicable.contains(kind);
      return ran;
    };
    sides.again = [&](const Json& alternatives) -> Result<TrialReport> {
      log.push_back("again " + alternatives.dump());
      return report(trials_agree);
    };
    sides.ask_reference = [&](const Json& what) {
      return answer("r", what, reference_seconds, reference_graph);
    };
    sides.ask_candidate = [&](const Json& what) {
      const bool slow = kind == InputKind::kOutliers;
      return answer("c", what, slow ? candidate_seconds_on_outliers : candidate_seconds, candidate_graph);
    };
    sides.judge = [&]() -> Result<TrialReport> {
      log.push_back("judge");
      return report(timed_outputs_agree);
    };
    sides.failed = [&] {
      TrialReport failed = report(true);
      failed.failed = Failure{Failure::Kind::kCrashed, {}, "a fault"};
      return failed;
    };
    sides.device = device;
    sides.gate = &gate;
    return time_sides(sides, request, Deadline::never());
  }
  int64_t count(const std::string& entry) const { return std::count(log.begin(), log.end(), entry); }
};

const TimeRequest kShort{.seed = 3, .seconds = 0.05};

TEST(TimedSession, EveryKindIsATrialThenTimedThenJudged) {
  FakeSession session;
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->spoiled);
  EXPECT_EQ(report->method, "graph");
  ASSERT_EQ(report->kinds.size(), kShort.kinds.size());
  EXPECT_EQ(report->counted.kind, InputKind::kOwn);
  EXPECT_NEAR(report->counted.speedup, 2, 0.01);
  EXPECT_LE(report->counted.ci_low, report->counted.speedup);
  EXPECT_NEAR(report->candidate_launches_ms, 1, 0.01);
  EXPECT_EQ(session.count("judge"), 4);
  EXPECT_EQ(session.count("c time_end"), 4);
  EXPECT_EQ(session.count("c choose"), 1);
  EXPECT_EQ(session.log[0], "trial own");
}

TEST(TimedSession, TheSlowestKindCounts) {
  FakeSession session;
  session.candidate_seconds_on_outliers = 3e-3;
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->counted.kind, InputKind::kOutliers);
  EXPECT_NEAR(report->counted.speedup, 2.0 / 3, 0.01);
}

TEST(TimedSession, KindsThatDoNotApplyAreNotTimed) {
  FakeSession session;
  session.inapplicable = {InputKind::kOutliers, InputKind::kNegative};
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->kinds.size(), 2U);
}

TEST(TimedSession, WhatWasChosenIsJudgedBeforeItIsTimed) {
  FakeSession session;
  session.chosen = Json::parse("[[4, 2]]");
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->alternatives, (std::vector<std::pair<int, int>>{{4, 2}}));
  const auto again = std::find(session.log.begin(), session.log.end(), "again [[4,2]]");
  ASSERT_NE(again, session.log.end());
  EXPECT_LT(again, std::find(session.log.begin(), session.log.end(), "c time_begin"));
}

TEST(TimedSession, WithoutAGraphOnOneSideBothAreLaunched) {
  FakeSession session;
  session.reference_graph = "it waits for the GPU";
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->method, "launches");
  EXPECT_EQ(report->not_captured, "the reference: it waits for the GPU");
  EXPECT_EQ(session.count("c time graph"), 0);
  EXPECT_GT(session.count("c time launches"), 0);
}

TEST(TimedSession, AWrongTimedOutputSpoilsIt) {
  FakeSession session;
  session.timed_outputs_agree = false;
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->spoiled);
  EXPECT_FALSE(report->spoiled->comparison->agrees);
}

TEST(TimedSession, ATrialThatFailsIsNotTimed) {
  FakeSession session;
  session.trials_agree = false;
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->spoiled);
  EXPECT_EQ(session.count("c time_begin"), 0);
}

TEST(TimedSession, AFaultWhileTimedIsTheCandidates) {
  FakeSession session;
  session.time_fails_after = 2;
  const auto report = session.time(kShort);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_TRUE(report->spoiled && report->spoiled->failed);
  EXPECT_EQ(report->spoiled->failed->message, "a fault");
}

TEST(TimedSession, ATimeBelowTheRooflineIsAnErrorOfOurs) {
  FakeSession session;
  TimeRequest request = kShort;
  request.least.bytes_read = 48e9;  // 10 ms of an H200
  const auto report = session.time(request);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().blame, Blame::kOurs);
  EXPECT_NE(report.error().message.find("cannot be"), std::string::npos);
  EXPECT_TRUE(session.time(request, "some other GPU").ok());
}

TEST(GpuGate, WhoTimesIsAlone) {
  GpuGate gate;
  {
    const auto a = gate.share(), b = gate.share();
    EXPECT_TRUE(a.owns_lock() && b.owns_lock());
  }
  auto alone = gate.alone();
  EXPECT_TRUE(alone.owns_lock());
}

}  // namespace
}  // namespace nereid::replay
