#include "nereid/train/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::train {
namespace {

constexpr std::string_view kSmall = R"(seed = 7
[model]
vocab_size = 300
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
[data]
train = ["a", "b"]
global_batch_size = 8
micro_batch_size = 2
[schedule]
kind = "warmup-stable-decay"
steps = 100
warmup_steps = 10
decay_steps = 20
)";

std::string error_of(std::string text) {
  const auto run = parse_run_file(text, "x.toml");
  return run.ok() ? "" : run.error().message;
}
std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(RunFile, ReadsKeysAndKeepsDefaults) {
  const RunFile run = parse_run_file(kSmall, "runs/small.toml").value();
  EXPECT_EQ(run.name, "small");
  EXPECT_EQ(run.seed, 7);
  ASSERT_TRUE(run.model.shape);
  EXPECT_EQ(run.model.shape->head_dim, 16);
  EXPECT_EQ(run.model.shape->family, lm::Family::kQwen3);
  EXPECT_THAT(run.data.train, testing::ElementsAre("a", "b"));
  EXPECT_EQ(run.data.sequence_length, 4096);
  EXPECT_EQ(run.schedule.kind, ScheduleSettings::Kind::kWarmupStableDecay);
  EXPECT_EQ(run.optimizer.beta2, 0.95);
  EXPECT_EQ(run.machine.precision, MachineSettings::Precision::kBfloat16);
}

TEST(RunFile, SaysWhatEndsAnAnswer) {
  const auto run =
      parse_run_file(replaced("hidden_size = 64", "hidden_size = 64\neos_token_id = 2"), "x.toml");
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run->model.shape->eos_token_ids, testing::ElementsAre(2));
  EXPECT_THAT(error_of(replaced("hidden_size = 64", "hidden_size = 64\neos_token_id = 300")),
              testing::HasSubstr("model.eos_token_id: expected an integer from 0 to 299, got 300"));
}

TEST(RunFile, NamesTheLineWhatWasExpectedAndWhatCame) {
  EXPECT_EQ(error_of(replaced("steps = 100", "steps = 0")),
            "x.toml:15: schedule.steps: expected an integer from 1 to 1000000000, got 0");
  EXPECT_EQ(error_of(replaced("steps = 100", "steps = \"many\"")),
            "x.toml:15: schedule.steps: expected an integer from 1 to 1000000000, got 'many'");
  EXPECT_EQ(error_of(replaced("\"b\"", "3")), "x.toml:10: data.train[1]: expected a text in quotes, got 3");
  EXPECT_EQ(
      error_of(replaced("kind = \"warmup-stable-decay\"", "kind = \"step\"")),
      "x.toml:14: schedule.kind: expected one of \"constant\", \"cosine\", \"warmup-stable-decay\", "
      "got 'step'\n"
      "x.toml:17: schedule has no key 'decay_steps'; it has final_share, kind, seconds, steps, warmup_steps");
  EXPECT_EQ(error_of(replaced("[data]", "[data]\nsequence_length = 1.5")),
            "x.toml:10: data.sequence_length: expected an integer from 2 to 16777216, got 1.5");
}

TEST(RunFile, RefusesUnknownKeys) {
  EXPECT_EQ(error_of(replaced("seed = 7", "sead = 7")),
            "x.toml:1: a run file has no key 'sead'; it has checkpoints, data, held_out_every, machine, "
            "model, name, "
            "optimizer, schedule, seed");
  EXPECT_THAT(error_of(replaced("[model]", "[model]\nstart_from = \"m\"")),
              testing::HasSubstr("x.toml:4: model has no key 'vocab_size'; it has start_from, tokenizer"));
  EXPECT_EQ(error_of(std::string(kSmall) + "[optimizer]\nmuon_momentum = 0.9\n"),
            "x.toml:19: optimizer has no key 'muon_momentum'; it has beta1, beta2, clip_norm, epsilon, kind, "
            "learning_rate, weight_decay");
}

TEST(RunFile, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of(replaced("num_key_value_heads = 2", "num_key_value_heads = 3")),
            "x.toml:8: model.num_key_value_heads: expected a divisor of num_attention_heads (4), got 3");
  EXPECT_EQ(error_of(replaced("micro_batch_size = 2", "micro_batch_size = 3")),
            "x.toml:12: data.micro_batch_size: expected a divisor of global_batch_size (8), got 3");
  EXPECT_EQ(error_of(replaced("steps = 100", "steps = 25")),
            "x.toml:15: schedule.steps: expected at least warmup_steps + decay_steps (30), got 25");
  EXPECT_EQ(
      error_of(replaced("hidden_size = 64", "hidden_size = 66")),
      "x.toml:4: model.hidden_size: expected a multiple of num_attention_heads (4), or a head_dim, got 66");
  EXPECT_EQ(error_of(replaced("[data]", "head_dim = 5\n[data]")),
            "x.toml:9: model.head_dim: expected an even number: rotary embeddings turn pairs, got 5");
}

TEST(RunFile, NamesWhatIsMissing) {
  EXPECT_EQ(error_of("name = \"a/b\""),
            "x.toml:1: name: expected a folder's name, got 'a/b'\n"
            "x.toml:1: model: expected a table [model], but it is missing\n"
            "x.toml:1: data: expected a table [data], but it is missing\n"
            "x.toml:1: schedule: expected a table [schedule], but it is missing");
  EXPECT_EQ(error_of(replaced("global_batch_size = 8\n", "")),
            "x.toml:9: data.global_batch_size: expected how many rows one step takes, but it is missing");
}

TEST(RunFile, SaysWhereTheFileIsNoToml) {
  EXPECT_THAT(error_of("a = [1,\nb = 2"), testing::StartsWith("x.toml:2:"));
  EXPECT_THAT(read_run_file("/nowhere/x.toml").error().message,
              testing::HasSubstr("/nowhere/x.toml: No such file"));
}

}  // namespace
}  // namespace nereid::train
