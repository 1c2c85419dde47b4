#include "nereid/train/rollout_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::train {
namespace {

class RolloutLogTest : public testing::Test {
 protected:
  std::vector<RolloutRecord> read() {
    std::vector<RolloutRecord> all;
    const Status status = read_rollouts(folder_.path(), [&](RolloutRecord rollout) {
      all.push_back(std::move(rollout));
      return ok_status();
    });
    error_ = status.ok() ? "" : status.error().message;
    return all;
  }
  TemporaryFolder folder_ = TemporaryFolder::create("rollouts").value();
  std::string error_;
};

RolloutRecord rollout(int64_t step, int64_t sample, std::string answer) {
  return {
      .step = step, .sample = sample, .verdict = "Mismatch", .rule = "values", .answer = std::move(answer)};
}

TEST_F(RolloutLogTest, WhatIsWrittenIsRead) {
  EXPECT_TRUE(read().empty());
  auto log = RolloutLog::open(folder_.path(), 0, 0).value();
  auto other = RolloutLog::open(folder_.path(), 1, 0).value();
  RolloutRecord first = rollout(0, 0, "a \"text\"\nof lines \xff");
  first.speedup = 1.5, first.advantage = -0.25, first.plan_advantage = 0.5, first.plan_tokens = 3,
  first.cut_off = true, first.tokens = 7;
  RolloutRecord second = rollout(0, 1, "");
  second.same_as = 0;
  ASSERT_TRUE(log.add({first, second}).ok());
  ASSERT_TRUE(other.add({rollout(0, 0, "b")}).ok());
  const auto all = read();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].answer, "b");  // of rollouts-1.jsonl
  EXPECT_EQ(all[1].answer, "a \"text\"\nof lines \xef\xbf\xbd");
  EXPECT_EQ(all[2].answer, all[1].answer);
  EXPECT_EQ(all[1].speedup, 1.5);
  EXPECT_EQ(all[1].advantage, -0.25);
  EXPECT_EQ(all[1].plan_advantage, 0.5);
  EXPECT_EQ(all[1].plan_tokens, 3);
  EXPECT_FALSE(all[2].advantage);
  EXPECT_TRUE(all[1].cut_off);
  EXPECT_EQ(all[1].tokens, 7);
  EXPECT_EQ(all[1].rule, "values");
}

TEST_F(RolloutLogTest, ARunThatGoesOnCutsOffWhatCameAfter) {
  for (const int64_t from : {int64_t{0}, int64_t{2}}) {
    auto log = RolloutLog::open(folder_.path(), 0, from).value();
    for (int64_t step = from; step < 4; ++step)
      ASSERT_TRUE(log.add({rollout(step, 0, from == 0 ? "old" : "new"), rollout(step, 1, "x")}).ok());
  }
  const auto all = read();
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[2].answer, "old");
  EXPECT_EQ(all[4].answer, "new");
  // A line that a kill cut short is no line.
  const auto path = folder_.path() / "rollouts.jsonl";
  const std::string text = read_file(path).value();
  ASSERT_TRUE(write_file_atomically(path, text + "{\"step\": 4, \"cl").ok());
  EXPECT_EQ(read().size(), 8U);
  (void)RolloutLog::open(folder_.path(), 0, 9).value();
  EXPECT_EQ(read_file(path).value(), text);
}

TEST_F(RolloutLogTest, BadLinesAreNamed) {
  ASSERT_TRUE(write_file_atomically(folder_.path() / "rollouts.jsonl", "{\"step\": 0}\n").ok());
  read();
  EXPECT_THAT(error_, testing::HasSubstr("rollouts.jsonl:1: expected an object with 'class'"));
  auto log = RolloutLog::open(folder_.path(), 0, 0).value();
  RolloutRecord alone = rollout(0, 1, "");
  alone.same_as = 0;
  ASSERT_TRUE(log.add({alone}).ok());
  read();
  EXPECT_THAT(error_, testing::HasSubstr(
                          "rollouts.jsonl:1: expected an earlier sample of this prompt as same_as, got 0"));
}

}  // namespace
}  // namespace nereid::train
