#include "nereid/train/rl/objective/rl_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/base/file.h"

namespace nereid::train {
namespace {

constexpr std::string_view kRlFile = R"([model]
start_from = "m"
[data]
sequence_length = 64
micro_batch_size = 1
[schedule]
steps = 3
[rl]
objective = "hrd"
tasks = ["a.jsonl", "b.jsonl"]
held_out = ["c.jsonl", "d.jsonl"]
samples = 4
[curriculum]
kind = "levels"
promote_at = 0.5
)";

std::string rl_error(std::string_view from, std::string_view to) {
  std::string text(kRlFile);
  text.replace(text.find(from), from.size(), to);
  const auto run = parse_rl_file(text, "r.toml");
  return run.ok() ? "" : run.error().message;
}

TEST(RlFile, ReadsBothTables) {
  const RlRun run = parse_rl_file(kRlFile, "r.toml").value();
  EXPECT_EQ(run.run.model.start_from, "m");
  EXPECT_EQ(run.rl.objective.kind, ObjectiveSettings::Kind::kHrd);
  EXPECT_EQ(run.rl.objective.alpha, 0.1);
  EXPECT_EQ(run.rl.samples, 4);
  EXPECT_TRUE(run.rl.rule_reward);
  EXPECT_FALSE(run.rl.objective.uniform_reward);
  EXPECT_EQ(run.curriculum.classes, 2);
  EXPECT_EQ(run.curriculum.promote_at, 0.5);
}

TEST(RlFile, ReadsWhatAnAblationLeavesOut) {
  std::string text(kRlFile);
  text.replace(text.find("samples = 4"), 11,
               "rule_reward = false\nuniform_reward = true\nspeedup_limit = 10\nincorrect_penalty = 0.5");
  const RlRun run = parse_rl_file(text, "r.toml").value();
  EXPECT_FALSE(run.rl.rule_reward);
  EXPECT_TRUE(run.rl.objective.uniform_reward);
  EXPECT_EQ(run.rl.objective.speedup_limit, 10);
  EXPECT_EQ(run.rl.objective.incorrect_penalty, 0.5);
  EXPECT_FALSE(parse_rl_file(kRlFile, "r.toml")->rl.objective.incorrect_penalty);
  text.replace(text.find("\"hrd\""), 5, "\"grpo\"");
  EXPECT_THAT(parse_rl_file(text, "r.toml").error().message,
              testing::HasSubstr("rl has no key 'uniform_reward'"));
  text = kRlFile;
  text.replace(text.find("\"hrd\""), 5, "\"best\"\nincorrect_penalty = 0.1");
  const auto best = parse_rl_file(text, "r.toml");
  ASSERT_TRUE(best.ok()) << best.error().message;
  EXPECT_EQ(best->rl.objective.incorrect_penalty, 0.1);
  EXPECT_FALSE(best->rl.objective.plan_incorrect_penalty);
  text.replace(text.find("incorrect_penalty"), 17, "plan_incorrect_penalty");
  EXPECT_EQ(parse_rl_file(text, "r.toml").value().rl.objective.plan_incorrect_penalty, 0.1);
  text.replace(text.find("\"best\""), 6, "\"hrd\"");
  EXPECT_THAT(parse_rl_file(text, "r.toml").error().message,
              testing::HasSubstr("rl has no key 'plan_incorrect_penalty'"));
}

TEST(RlFile, ReadsTheSftMix) {
  EXPECT_FALSE(parse_rl_file(kRlFile, "r.toml")->sft_mix);
  std::string text = std::string(kRlFile) + "[sft_mix]\ntrain = [\"a\", \"b\"]\nrows = 6\n";
  const auto sft_mix = parse_rl_file(text, "r.toml").value().sft_mix;
  EXPECT_EQ(sft_mix->train, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sft_mix->rows, 6);
  EXPECT_EQ(sft_mix->weight, 1);
  EXPECT_EQ(parse_rl_file(text + "weight = 0.25\n", "r.toml")->sft_mix->weight, 0.25);
  EXPECT_EQ(parse_rl_file(text + "weight = 0\n", "r.toml").error().message,
            "r.toml:19: sft_mix.weight: expected a number above 0 and at most 1000000, got 0");
  EXPECT_THAT(parse_rl_file(std::string(kRlFile) + "[sft_mix]\nrows = 6\n", "r.toml").error().message,
              testing::StartsWith("r.toml:16: sft_mix.train: expected an array of folders"));
}

TEST(RlFile, TheObjectiveSaysWhichKeysThereAre) {
  std::string text(kRlFile);
  text.replace(text.find("\"hrd\""), 5, "\"best\"\nspeedup_limit = 3\nclip = 0.3");
  const ObjectiveSettings objective = parse_rl_file(text, "r.toml").value().rl.objective;
  EXPECT_EQ(objective.kind, ObjectiveSettings::Kind::kBest);
  EXPECT_EQ(objective.speedup_limit, 3);
  EXPECT_EQ(objective.clip, 0.3);
  text.replace(text.find("clip = 0.3"), 10, "baseline = \"mean\"");
  EXPECT_THAT(parse_rl_file(text, "r.toml").error().message, testing::HasSubstr("rl has no key 'baseline'"));
}

TEST(RlFile, ReadsHowAnswersAreTimed) {
  EXPECT_EQ(parse_rl_file(kRlFile, "r.toml")->rl.times, RlSettings::Times::kTogether);
  std::string text(kRlFile);
  text.replace(text.find("samples = 4"), 11,
               "times = \"apart\"\ntiming_seconds = 0.03\nfast_inputs = true\nstraggler_timeout_s = "
               "4\nsequences = 512\ncode_temperature = 0\nmin_p = 0.1");
  const RlSettings rl = parse_rl_file(text, "r.toml").value().rl;
  EXPECT_EQ(rl.times, RlSettings::Times::kApart);
  EXPECT_EQ(rl.timing_seconds, 0.03);
  EXPECT_TRUE(rl.fast_inputs);
  EXPECT_EQ(rl.straggler_timeout_s, 4);
  EXPECT_EQ(rl.sequences, 512);
  EXPECT_EQ(rl.code_temperature, 0);
  EXPECT_EQ(rl.min_p, 0.1);
  EXPECT_FALSE(parse_rl_file(kRlFile, "r.toml")->rl.code_temperature);
  EXPECT_EQ(parse_rl_file(kRlFile, "r.toml")->rl.branches, 1);
  EXPECT_EQ(rl_error("samples = 4", "samples = 4\nbranches = 2"), "");
  EXPECT_EQ(rl_error("samples = 4", "samples = 4\nbranches = 3"),
            "r.toml:13: rl.branches: expected a divisor of rl.samples (4), got 3");
  EXPECT_EQ(rl_error("samples = 4", "min_p = 2").find("r.toml:12: rl.min_p: expected"), 0U);
  EXPECT_EQ(rl_error("samples = 4", "times = \"later\"").find("r.toml:12: rl.times: expected"), 0U);
}

TEST(RlFile, ARunMayEndWithItsSeconds) {
  EXPECT_EQ(parse_rl_file(kRlFile, "r.toml")->run.schedule.seconds, 0);
  std::string text(kRlFile);
  text.replace(text.find("steps = 3"), 9, "kind = \"cosine\"\nseconds = 90");
  const ScheduleSettings schedule = parse_rl_file(text, "r.toml").value().run.schedule;
  EXPECT_EQ(schedule.seconds, 90);
  EXPECT_GE(schedule.steps, 1'000'000);
  EXPECT_EQ(
      rl_error("steps = 3", "warmup_steps = 1"),
      "r.toml:6: schedule.steps: expected how many steps the run has, or its seconds, but it is missing");
  EXPECT_THAT(rl_error("steps = 3", "kind = \"warmup-stable-decay\"\nseconds = 90\ndecay_steps = 1"),
              testing::StartsWith("r.toml:8: schedule.seconds: expected none where decay_steps is set"));
}

TEST(RlFile, RefusesWhatCannotBe) {
  EXPECT_EQ(rl_error("samples = 4", "samples = 1"),
            "r.toml:12: rl.samples: expected an integer from 2 to 65536, got 1");
  EXPECT_EQ(
      rl_error("[\"c.jsonl\", \"d.jsonl\"]", "[\"c.jsonl\"]"),
      "r.toml:11: rl.held_out: expected a file for each of the 2 classes in tasks, got an array of 1 items");
  EXPECT_THAT(rl_error("samples = 4", "tau = 4"),
              testing::StartsWith("r.toml:12: rl has no key 'tau'; it has alpha, baseline, branches, clip,"));
  EXPECT_THAT(rl_error("kind = \"levels\"\npromote_at = 0.5", "kind = \"mixture\"\nshares = [1]"),
              testing::StartsWith("r.toml:15: curriculum.shares: expected a number for each of 2 classes"));
  EXPECT_THAT(rl_error("sequence_length = 64", "train = [\"x\"]"),
              testing::StartsWith("r.toml:4: data has no key 'train'"));
  EXPECT_THAT(parse_run_file(kRlFile, "r.toml").error().message,
              testing::HasSubstr("a run file has no key 'rl'"));
}

TEST(RlFile, TheRunsOfThisRepositoryCanBeRead) {
  int read = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(NEREID_SOURCE_DIR) / "runs")) {
    if (entry.path().extension() != ".toml") continue;  // what makes a run's data
    const std::string text = read_file(entry.path()).value(), name = entry.path().filename().string();
    const bool whole = name.starts_with("rl_") || name.ends_with("-rl.toml")
                           ? parse_rl_file(text, name).ok()
                           : parse_run_file(text, name).ok();
    EXPECT_TRUE(whole) << name;
    ++read;
  }
  EXPECT_GE(read, 2);
}

TEST(RlFile, TurnsHaveReturns) {
  const auto parsed = [](const std::string& keys) {
    return parse_rl_file(
        "[model]\nstart_from = \"m\"\n[data]\n[optimizer]\n[schedule]\nsteps = 1\n[rl]\n"
        "tasks = [\"t\"]\n" +
            keys,
        "run.toml");
  };
  const auto plain = parsed("");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->rl.turns, 1);
  EXPECT_EQ(plain->rl.objective.baseline, Baseline::kNormalized);
  const auto several = parsed("turns = 3\nturn_discount = 0.5\nobjective = \"hrd\"\n");
  ASSERT_TRUE(several.ok()) << several.error().message;
  EXPECT_EQ(several->rl.turns, 3);
  EXPECT_EQ(several->rl.turn_discount, 0.5);
  EXPECT_EQ(several->rl.objective.baseline, Baseline::kLeaveOneOut);
  const auto named = parsed("turns = 3\nbaseline = \"mean\"\n");
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->rl.objective.baseline, Baseline::kMean);
  for (const char* bad : {"turns = 0\n", "turns = 17\n", "turn_discount = 1.5\n",
                          "turns = 2\nobjective = \"best\"\n", "turns = 2\nobjective = \"drpo\"\n"})
    EXPECT_FALSE(parsed(bad).ok()) << bad;
}

}  // namespace
}  // namespace nereid::train
