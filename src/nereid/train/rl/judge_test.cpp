#include "nereid/train/rl/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"

namespace nereid::train {
namespace {

using testing::HasSubstr;
using verify::VerdictKind;

// A program in `nereid`'s place. It writes down what it was given, and treats an answer by what is in it:
// "kill" ends it, "ours" is an Error, "bad" a Mismatch, "no code" Malformed, the rest Verified. As a clock it
// reports times, but for "fault", and writes down which trace it was to find.
constexpr const char* kProgram =
    R"(#!/bin/sh
echo "started $*" >> "$0.calls"
while read -r line; do
  id=${line#*\"id\":\"}; id=${id%%\"*}
  case "$line" in
    *slow*) (sleep 5; echo "{\"id\": \"$id\", \"verdict\": \"Verified\", \"seconds\": 1}") & continue ;;
    *kill*) echo "killed by $id" >&2; exit 9 ;;
    *ours*) echo "ours" >> "$0.calls"; word=Error ;;
    *bad*) word=Mismatch ;;
    *'no code'*) word=Malformed ;;
    *) echo "judged" >> "$0.calls"; word=Verified ;;
  esac
  more='"trace": "digest"'
  case "$*" in
    *--time-only*)
      case "$line" in *'"trace":"digest"'*) echo "held to its trace" >> "$0.calls" ;; esac
      case "$line" in *fault*) word=Unsafe ;; esac
      more='"times": {"speedup": 4, "reference_ms": 2}, )"
    R"("phases": {"open": 2, "time_trial": 1, "time_samples": 0.5, "gpu": 3, "time": 9}' ;;
    *--compile-for\ 90*) more="$more, \"phases\": {\"compile\": 4}" ;;
  esac
  echo "{\"id\": \"$id\", \"verdict\": \"$word\", \"rule\": \"r\", \"reason\": \"because\", \"seconds\":)"
    R"( 3, $more}"
done
echo "ended" >> "$0.calls"
)";

class AnswerJudgeTest : public testing::Test {
 protected:
  AnswerJudgeTest() {
    ::signal(SIGPIPE, SIG_IGN);
    be(kProgram);
    installation_.bin = folder_.path();
  }
  void be(const std::string& program) {
    const auto path = folder_.path() / "nereid";
    EXPECT_TRUE(write_file_atomically(path, program).ok());
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::unique_ptr<AnswerJudge> start(int64_t jobs = 4) {
    return AnswerJudge::start(installation_, {.device = "cpu", .jobs = jobs}, folder_.path() / "log").value();
  }
  static std::string code(const std::string& source) { return "So:\n```python\n" + source + "\n```\n"; }
  int64_t calls(const std::string& word) const {
    const std::string text = read_file(folder_.path() / "nereid.calls").value();
    int64_t count = 0;
    for (size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++count;
    return count;
  }
  TemporaryFolder folder_ = TemporaryFolder::create("judge").value();
  Installation installation_;
};

TEST_F(AnswerJudgeTest, AnIdleProgramEndsByItselfWhereItsWorkersAreKeptWarm) {
  for (const bool keeps : {false, true}) {
    keeps ? ::setenv("NEREID_KEEP_WARM", "9", 1) : ::unsetenv("NEREID_KEEP_WARM");
    const auto judge = start();
    EXPECT_EQ(judge->wait(judge->submit({.task = "task", .answer = code("good = 1")})).value().kind,
              VerdictKind::kVerified);
  }
  ::unsetenv("NEREID_KEEP_WARM");
  EXPECT_EQ(calls("started"), 2);
  EXPECT_EQ(calls("ended"), 1);
}

TEST_F(AnswerJudgeTest, EachProgramOfARunIsJudgedOnce) {
  const auto judge = start();
  Scoring scoring(*judge, nullptr);
  for (int step = 0; step < 3; ++step) {
    ScoringRound round(scoring);
    for (const size_t index : {2, 0, 1, 3})
      round.add(index, "task", code(fmt::format("{} = 1  # {}\n", index % 2 == 0 ? "good" : "bad", index)));
    round.add(4, "another", code("good = 1"));
    EXPECT_EQ(round.different(), 3U);
    EXPECT_EQ(round.judged(), step == 0 ? 3U : 0U);
    const auto verdicts = round.verdicts().value();
    ASSERT_EQ(verdicts.size(), 5U);
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(verdicts[i].kind, i % 2 == 0 ? VerdictKind::kVerified : VerdictKind::kMismatch);
    EXPECT_EQ(verdicts[0].reason, "because");
    EXPECT_EQ(verdicts[0].judged.speedup, 1);
  }
  EXPECT_EQ(calls("started"), 1);
  EXPECT_EQ(calls("judged"), 2);
  EXPECT_EQ(judge->restarts(), 0);
}

TEST_F(AnswerJudgeTest, WhatIsVerifiedIsTimedApart) {
  const auto judge =
      AnswerJudge::start(installation_,
                         {.device = "cpu", .jobs = 4, .traces = "/a/folder", .compile_for = 90},
                         folder_.path() / "log")
          .value();
  const auto clock = AnswerJudge::start(installation_,
                                        {.device = "cuda",
                                         .times = true,
                                         .jobs = 4,
                                         .time_only = true,
                                         .traces = "/a/folder",
                                         .timing_width = 0.04},
                                        folder_.path() / "log");
  Scoring scoring(*judge, clock->get());
  // Held-out tasks are not timed; a later round times them.
  ScoringRound untimed(scoring, ScoringRound::Clock::kNone);
  untimed.add(0, "task", code("good = 1"));
  EXPECT_EQ(untimed.verdicts().value()[0].judged.speedup, 1);
  for (int step = 0; step < 2; ++step) {
    ScoringRound round(scoring);
    for (size_t i = 0; const char* word : {"good", "bad", "fault", "good"})
      round.add(i++, "task", code(word));
    round.add(4, "task", code("good = 1"));
    round.add(5, "task", "no code");
    const auto verdicts = round.verdicts().value();
    EXPECT_EQ(verdicts[0].judged.speedup, 4);
    EXPECT_EQ(verdicts[0].reference_ms, 2);
    EXPECT_EQ(verdicts[0].kind, VerdictKind::kVerified);
    EXPECT_EQ(verdicts[1].kind, VerdictKind::kMismatch);
    EXPECT_EQ(verdicts[2].kind, VerdictKind::kUnsafe) << "what the GPU finds out counts";
    EXPECT_FALSE(verdicts[2].judged.correct);
    EXPECT_EQ(verdicts[3].judged.speedup, 4);
    EXPECT_EQ(verdicts[4].judged.speedup, 4);
    EXPECT_EQ(verdicts[5].kind, VerdictKind::kMalformed);
    EXPECT_EQ(round.timed(), step == 0 ? 3U : 0U);
    const ClockSeconds seconds = step == 0 ? ClockSeconds{0, 0, 9, 1.5, 0, 0, 9} : ClockSeconds{};
    EXPECT_EQ(round.clock_seconds(), seconds);
    EXPECT_EQ(round.compiled_ahead_seconds(), step == 0 ? 5 * 4 : 0);
    EXPECT_EQ(round.judged_seconds(), step == 0 ? 5 * 3 : 0);
    EXPECT_EQ(round.slowest_seconds(), step == 0 ? 3 : 0);
  }
  // Handed in before the round before had its times: judged twice, timed once.
  ScoringRound first(scoring), second(scoring);
  for (auto* round : {&first, &second}) round->add(0, "task", code("good = 2"));
  for (auto* round : {&first, &second}) EXPECT_EQ(round->verdicts().value()[0].judged.speedup, 4);
  EXPECT_EQ(std::pair(first.judged(), second.judged()), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(std::pair(first.timed(), second.timed()), std::pair(size_t{1}, size_t{0}));
  EXPECT_EQ(calls("held to its trace"), 4);
  EXPECT_EQ(calls("--compile-for 90"), 1);
  EXPECT_EQ(calls("--timing-width 0.04"), 1);
  EXPECT_EQ(calls("--traces /a/folder"), 2);
}

TEST_F(AnswerJudgeTest, TheClockWorksWhileTheLastVerdictsAreAwaited) {
  const auto judge = start();
  const auto clock = AnswerJudge::start(
      installation_, {.device = "cuda", .times = true, .jobs = 4, .time_only = true}, folder_.path() / "log");
  Scoring scoring(*judge, clock->get());
  ScoringRound round(scoring);
  round.add(0, "task", code("slow"));  // its verdict takes five seconds, and so does its time
  round.add(1, "task", code("good = 1"));
  int64_t timed_by_then = -1;
  const auto verdicts = round.verdicts(true, [&] { timed_by_then = calls("held to its trace"); }).value();
  EXPECT_EQ(timed_by_then, 1) << "the good one was timed before the slow one had its verdict";
  EXPECT_EQ(verdicts[1].judged.speedup, 4);
  EXPECT_EQ(round.timed(), 2U);
}

TEST(Scoring, OneProgramIsWhatHasOneNormalForm) {
  const auto fenced = [](const std::string& source) { return "```python\n" + source + "```\n"; };
  const std::string key = program_key("t", "<think>\none\n</think>\n" + fenced("x = 1\n"));
  EXPECT_EQ(program_key("t", "<think>\nanother\n</think>\nSo:\n" + fenced("x = 1  # one\n\n")), key);
  EXPECT_NE(program_key("t", fenced("x = 2\n")), key);
  EXPECT_NE(program_key("u", fenced("x = 1\n")), key);
  EXPECT_EQ(program_key("t", "nothing"), program_key("t", "nothing either"));
  EXPECT_NE(program_key("t", "nothing"), key);
}

TEST_F(AnswerJudgeTest, AnAnswerThatKillsTheJudgeIsNoVerdictAndTheOthersHaveTheirs) {
  const auto judge = start();
  Scoring scoring(*judge, nullptr);
  ScoringRound round(scoring);
  for (size_t i = 0; i < 40; ++i) round.add(i, "task", code(i == 3 ? "kill" : fmt::format("good = {}", i)));
  const auto verdicts = round.verdicts().value();
  for (size_t i = 0; i < 40; ++i)
    EXPECT_EQ(verdicts[i].kind, i == 3 ? VerdictKind::kError : VerdictKind::kVerified) << i;
  EXPECT_FALSE(verdicts[3].judged.valid);
  EXPECT_EQ(judge->restarts(), 3);
}

TEST_F(AnswerJudgeTest, WhatComesLongAfterTheOthersIsNoVerdict) {
  const auto judge = start();
  Scoring scoring(*judge, nullptr, 0.1);
  const auto answer = [](size_t i) { return code(fmt::format("{} = {}", i % 16 == 3 ? "slow" : "good", i)); };
  ScoringRound round(scoring);
  for (size_t i = 0; i < 20; ++i) round.add(i, "task", answer(i));
  const Stopwatch watch;
  const auto verdicts = round.verdicts().value();
  EXPECT_LT(watch.seconds(), 4.8);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(verdicts[i].kind, i % 16 == 3 ? VerdictKind::kError : VerdictKind::kVerified) << i;
  // It is requested again; and where it is all that there is, it is waited for.
  ScoringRound again(scoring);
  for (size_t i = 0; i < 20; ++i) again.add(i, "task", answer(i));
  EXPECT_EQ(again.judged(), 2U);
  for (const auto& verdict : again.verdicts().value()) EXPECT_EQ(verdict.kind, VerdictKind::kVerified);
  // Of held-out tasks none is left out.
  ScoringRound held_out(scoring, ScoringRound::Clock::kNone);
  for (size_t i = 0; i < 20; ++i) held_out.add(i, "another", answer(i));
  for (const auto& verdict : held_out.verdicts().value()) EXPECT_EQ(verdict.kind, VerdictKind::kVerified);
  EXPECT_EQ(judge->restarts(), 0);
}

TEST_F(AnswerJudgeTest, AnErrorIsAskedAboutAgain) {
  const auto judge = start();
  EXPECT_EQ(judge->wait(judge->submit({.task = "t", .answer = "ours"})).value().kind, VerdictKind::kError);
  EXPECT_EQ(calls("ours"), 2);
}

TEST_F(AnswerJudgeTest, AProgramThatNeverAnswersEndsTheRunWithItsLastWords) {
  be("#!/bin/sh\necho 'there is no GPU' >&2\nexit 2\n");
  const auto judge = start();
  for (int i = 0; i < 9; ++i) judge->submit({.task = "t", .answer = fmt::format("{}", i)});
  const auto failed = judge->wait(judge->submit({.task = "t", .answer = "last"}));
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("ended 10 times without a verdict"));
  EXPECT_THAT(failed.error().message, HasSubstr("there is no GPU"));
}

TEST_F(AnswerJudgeTest, WhatIsNoVerdictEndsTheRun) {
  be("#!/bin/sh\nread -r line\necho 'hello'\nsleep 9\n");
  const auto judge = start();
  const auto failed = judge->wait(judge->submit({.task = "t", .answer = "a"}));
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("the judge's answer"));
}

TEST_F(AnswerJudgeTest, MoreThanAPipeHolds) {
  const auto judge = start(64);
  Scoring scoring(*judge, nullptr);
  ScoringRound round(scoring);
  for (size_t i = 0; i < 64; ++i) round.add(i, "task", code(fmt::format("{}{}", std::string(1500, 'x'), i)));
  EXPECT_EQ(round.verdicts().value().size(), 64U);
  EXPECT_EQ(calls("judged"), 64);
}

TEST(Judge, SeesOneOfOurGpus) {
  const std::vector<std::string> plain = {"A=1", "B=2"}, some = {"CUDA_VISIBLE_DEVICES=4,GPU-5,6", "A=1"};
  EXPECT_EQ(environment_with(plain, -1), plain);
  EXPECT_EQ(environment_with(some, -1), some);
  EXPECT_EQ(environment_with(plain, 2).back(), "CUDA_VISIBLE_DEVICES=2");
  EXPECT_THAT(environment_with(some, 0), testing::ElementsAre("A=1", "CUDA_VISIBLE_DEVICES=4"));
  EXPECT_THAT(environment_with(some, 1), testing::ElementsAre("A=1", "CUDA_VISIBLE_DEVICES=GPU-5"));
  EXPECT_THAT(environment_with(some, 2), testing::ElementsAre("A=1", "CUDA_VISIBLE_DEVICES=6"));
  EXPECT_THAT(environment_with(some, 3), testing::ElementsAre("A=1", "CUDA_VISIBLE_DEVICES="));
}

TEST(Judge, ReadsVerdicts) {
  const auto read = [](std::string_view line) { return parse_judged(line, "v:1").value().second; };
  EXPECT_EQ(parse_judged(R"({"id": "17", "verdict": "Verified"})", "v:1")->first, 17u);
  const auto verified =
      read(R"({"id": "1", "verdict": "Verified", "times": {"speedup": 1.5, "reference_ms": 0.25}})");
  EXPECT_TRUE(verified.judged.valid && verified.judged.correct);
  EXPECT_EQ(verified.judged.speedup, 1.5);
  EXPECT_EQ(verified.reference_ms, 0.25);
  EXPECT_EQ(read(R"({"id": "1", "verdict": "Verified", "rule": null})").judged.speedup, 1);
  const auto disallowed = read(R"({"id": "1", "verdict": "Disallowed", "rule": "aten-compute"})");
  EXPECT_EQ(disallowed.rule, "aten-compute");
  EXPECT_FALSE(disallowed.judged.valid);
  const auto cheat = read(R"({"id": "1", "verdict": "Disallowed", "rule": "no-launch",
      "verdict_without_rules": {"verdict": "Verified", "times": {"speedup": 1.25}}})");
  EXPECT_EQ(cheat.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(cheat.rule, "no-launch");
  EXPECT_TRUE(cheat.judged.valid && cheat.judged.correct);
  EXPECT_EQ(cheat.judged.speedup, 1.25);
  const auto bad_cheat = read(R"({"id": "1", "verdict": "Disallowed", "verdict_without_rules": )"
                              R"({"verdict": "Mismatch", "times": null}})");
  EXPECT_FALSE(bad_cheat.judged.correct);
  const auto mismatch = read(R"({"id": "1", "verdict": "Mismatch"})");
  EXPECT_TRUE(mismatch.judged.valid);
  EXPECT_FALSE(mismatch.judged.correct);
  EXPECT_EQ(read(R"({"id": "1", "verdict": "Mismatch", "phases": {"open": 0.5}})").phases.at("open"), 0.5);
  EXPECT_FALSE(parse_judged(R"({"id": "1", "verdict": "Mismatch", "phases": {"open": "x"}})", "v:1").ok());
  EXPECT_EQ(parse_judged(R"({"id": "x", "verdict": "Mismatch"})", "v:1").error().message,
            "v:1.id: expected a number, got \"x\"");
  EXPECT_FALSE(parse_judged("{", "v:1").ok());
}

}  // namespace
}  // namespace nereid::train
