#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nereid/train/reinforce/judge.h"
#include "nereid/train/reinforce/rollouts.h"

namespace nereid::train {
namespace {

TEST(Rollouts, EveryTokenOfEveryAnswerHasItsPlace) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<WrittenAnswer> answers(1 + random() % 20);
    for (auto& answer : answers) {
      answer.tokens.resize(1 + random() % 40);
      for (auto& token : answer.tokens) token = static_cast<int32_t>(1 + random() % 1000);
      answer.prompt = 1 + random() % answer.tokens.size();
    }
    const auto packed = pack_answers(answers, 40, 3);
    int64_t targets = 0, wanted = 0;
    for (const Batch& batch : packed.batches) {
      EXPECT_LE(batch.rows, 3);
      EXPECT_EQ(std::ssize(batch.tokens), batch.rows * 40);
      EXPECT_EQ(batch.cumulative_lengths.back(), batch.rows * 40);
      targets += std::ranges::count_if(batch.targets, [](int32_t target) { return target != kNoTarget; });
      for (size_t d = 1; d < batch.cumulative_lengths.size(); ++d)
        for (int32_t i = batch.cumulative_lengths[d - 1]; i < batch.cumulative_lengths[d]; ++i)
          EXPECT_EQ(batch.positions[static_cast<size_t>(i)], i - batch.cumulative_lengths[d - 1]);
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto& place = packed.places[i];
      const Batch& batch = packed.batches[place.batch];
      for (size_t t = answers[i].prompt; t < answers[i].tokens.size(); ++t, ++wanted) {
        EXPECT_EQ(batch.targets[place.first + t - answers[i].prompt], answers[i].tokens[t]);
        EXPECT_EQ(batch.tokens[place.first + t - answers[i].prompt], answers[i].tokens[t - 1]);
      }
    }
    EXPECT_EQ(targets, wanted);
  }
}

TEST(Judge, ReadsVerdicts) {
  const auto read = [](std::string_view line) { return parse_judged(line, "v:1").value().second; };
  EXPECT_EQ(parse_judged(R"({"id": "17", "verdict": "Verified"})", "v:1")->first, 17u);
  const auto verified = read(R"({"id": "1", "verdict": "Verified", "times": {"speedup": 1.5}})");
  EXPECT_TRUE(verified.judged.valid && verified.judged.correct);
  EXPECT_EQ(verified.judged.speedup, 1.5);
  EXPECT_EQ(read(R"({"id": "1", "verdict": "Verified"})").judged.speedup, 1);
  const auto disallowed =
      read(R"({"id": "1", "verdict": "Disallowed", "evidence": [{"rule": "aten-compute"}]})");
  EXPECT_EQ(disallowed.rule, "aten-compute");
  EXPECT_FALSE(disallowed.judged.valid);
  const auto cheat = read(R"({"id": "1", "verdict": "Disallowed", "evidence": [{"rule": "no-launch"}],
      "otherwise": {"verdict": "Verified", "times": {"speedup": 1.25}}})");
  EXPECT_EQ(cheat.word, "Disallowed");
  EXPECT_EQ(cheat.rule, "no-launch");
  EXPECT_TRUE(cheat.judged.valid && cheat.judged.correct);
  EXPECT_EQ(cheat.judged.speedup, 1.25);
  const auto bad_cheat =
      read(R"({"id": "1", "verdict": "Disallowed", "otherwise": {"verdict": "Mismatch", "times": null}})");
  EXPECT_FALSE(bad_cheat.judged.correct);
  const auto mismatch = read(R"({"id": "1", "verdict": "Mismatch"})");
  EXPECT_TRUE(mismatch.judged.valid);
  EXPECT_FALSE(mismatch.judged.correct);
  EXPECT_EQ(parse_judged(R"({"id": "x", "verdict": "Mismatch"})", "v:1").error().message,
            "v:1.id: expected a number, got \"x\"");
  EXPECT_FALSE(parse_judged("{", "v:1").ok());
}

}  // namespace
}  // namespace nereid::train
