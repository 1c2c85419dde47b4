#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nereid/train/rl/prefetched_rollouts.h"
#include "nereid/train/rl/rollouts.h"
#include "nereid/train/rl/writer.h"

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

// Its </think> is a special token, which texts leave out.
TEST(Plan, EndsAtItsTokenAlsoWhereTheTextHasItNot) {
  const auto tokenizer =
      lm::Tokenizer::load(std::filesystem::path(NEREID_SOURCE_DIR) / "models/small/tokenizer.json").value();
  const lm::TokenId end = tokenizer->find("</think>").value();
  lm::Encoder encoder(tokenizer);
  const auto tokens_of = [&](const char* text) {
    std::vector<lm::TokenId> ids;
    EXPECT_TRUE(encoder.encode(text, {}, ids).ok());
    return std::vector<int32_t>(ids.begin(), ids.end());
  };
  const auto plan = tokens_of("<think>\nOne by one: two kernels.\n</think>");
  const auto answer = tokens_of("<think>\nOne by one: two kernels.\n</think>\n\n```python\nx = 1\n```");
  ASSERT_LT(plan.size(), answer.size());
  EXPECT_EQ(plan_length(answer, end), plan.size());
  EXPECT_EQ(plan_length(tokens_of("x = 1"), end), 0U);
  lm::StreamDecoder decoder(tokenizer, /*skip_special=*/true);
  std::string text;
  for (const int32_t token : plan) text += decoder.push(static_cast<lm::TokenId>(token));
  EXPECT_EQ(text + decoder.finish(), "\nOne by one: two kernels.\n");
}

TEST(PrefetchedRollouts, AnyNumberOfRanksReadsWhatAnyOtherWrote) {
  std::mt19937 random(5);
  for (const int64_t wrote : {1, 2, 3}) {
    std::vector<std::string> kept;
    std::vector<DrawnAnswer> all;
    for (int64_t rank = 0; rank < wrote; ++rank) {
      PrefetchedRollouts written{.step = 7, .classes = {0, 1, 0, 0}, .tasks = {5, 6, 7, 8}, .answers = {}};
      for (size_t prompt = static_cast<size_t>(rank); prompt < 4; prompt += static_cast<size_t>(wrote))
        for (size_t sample = 0; sample < 2; ++sample) {
          DrawnAnswer answer{.prompt = prompt,
                             .sample = sample,
                             .turn = random() % 3,
                             .tokens = {},
                             .engine_logprobs = {-0.1F, -1.0F / 3},
                             .text = {}};
          answer.tokens = {
              .tokens = {1, 2, static_cast<int32_t>(random() % 9), 3}, .prompt = 2, .begun = prompt % 2};
          written.answers.push_back(answer);
          all.push_back(answer);
        }
      kept.push_back(to_cbor(written));
    }
    for (const int64_t reads : {1, 2}) {
      size_t seen = 0;
      for (int64_t rank = 0; rank < reads; ++rank) {
        const auto step = prefetched_rollouts_of(kept, rank, reads, 10, "c").value();
        EXPECT_EQ(step.step, 7);
        EXPECT_EQ(step.tasks, (std::vector<size_t>{5, 6, 7, 8}));
        EXPECT_TRUE(std::ranges::is_sorted(step.answers, {}, [](const DrawnAnswer& answer) {
          return std::tuple(answer.turn, answer.prompt, answer.sample);
        }));
        for (const auto& answer : step.answers) {
          EXPECT_EQ(static_cast<int64_t>(answer.prompt) % reads, rank);
          seen += std::ranges::count_if(all, [&](const DrawnAnswer& other) {
                    return other.prompt == answer.prompt && other.tokens.tokens == answer.tokens.tokens &&
                           other.tokens.begun == answer.tokens.begun && other.turn == answer.turn &&
                           other.sample == answer.sample && other.engine_logprobs == answer.engine_logprobs;
                  }) > 0;
        }
      }
      EXPECT_EQ(seen, 8U);
    }
    EXPECT_EQ(prefetched_rollouts_of(kept, 0, 1, 3, "c").error().message,
              "c: rank 0's answers.answers[0]: expected tokens below 3, got an object with begun, length, "
              "logprobs, prompt, sample, tokens, turn");
  }
  EXPECT_FALSE(prefetched_rollouts_of({"x"}, 0, 1, 3, "c").ok());
}

}  // namespace
}  // namespace nereid::train
