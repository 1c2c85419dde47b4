#include "nereid/train/rl/objective/rl_file.h"

#include "nereid/train/toml_table.h"

namespace nereid::train {
namespace {

void read_rl(TomlTable& root, RlSettings& rl) {
  root.required("rl", "a table [rl]");
  auto table = root.table("rl");
  if (!table) return;
  using Kind = ObjectiveSettings::Kind;
  auto& objective = rl.objective;
  table->integer("turns", rl.turns, 1, 16);
  table->real("turn_discount", rl.turn_discount, {.lowest = 0, .highest = 1});
  if (rl.turns > 1) objective.baseline = Baseline::kLeaveOneOut;
  table->choice<Kind>(
      "objective", objective.kind,
      {{"grpo", Kind::kGrpo}, {"hrd", Kind::kHrd}, {"best", Kind::kBest}, {"drpo", Kind::kDrpo}});
  if (rl.turns > 1 && objective.kind != Kind::kGrpo && objective.kind != Kind::kHrd)
    table->wrong("turns", "1, or an objective with returns: grpo or hrd");
  if (objective.kind == Kind::kDrpo) {
    table->real("lambda", objective.lambda, {.lowest = 0, .highest = 1e6, .above = true});
    table->real("tau", objective.tau, {.lowest = 0, .highest = 1e6, .above = true});
    table->real("beta", objective.beta, {.lowest = 0, .highest = 1e9});
    table->real("delta", objective.delta, {.lowest = 0, .highest = 1e6});
  } else {
    if (objective.kind != Kind::kBest)
      table->choice<Baseline>("baseline", objective.baseline,
                              {{"normalized", Baseline::kNormalized},
                               {"mean", Baseline::kMean},
                               {"leave_one_out", Baseline::kLeaveOneOut}});
    table->real("clip", objective.clip, {.lowest = 0, .highest = 1, .above = true, .below = true});
  }
  if (objective.kind == Kind::kHrd || objective.kind == Kind::kBest) {
    table->real("speedup_limit", objective.speedup_limit, {.lowest = 1, .highest = 1e6});
    if (table->has("incorrect_penalty"))
      table->real("incorrect_penalty", objective.incorrect_penalty.emplace(0), {.lowest = 0, .highest = 1e3});
  }
  if (objective.kind == Kind::kBest && table->has("plan_incorrect_penalty"))
    table->real("plan_incorrect_penalty", objective.plan_incorrect_penalty.emplace(0),
                {.lowest = 0, .highest = 1e3});
  if (objective.kind == Kind::kHrd) {
    table->real("alpha", objective.alpha, {.lowest = 0, .highest = 1e3});
    table->boolean("uniform_reward", objective.uniform_reward);
  }
  table->text("tokenizer", rl.tokenizer);
  table->required("tasks", "an array of files of tasks, one for each class");
  table->texts("tasks", rl.tasks);
  if (table->has("tasks") && rl.tasks.empty()) table->wrong("tasks", "at least one file");
  table->texts("held_out", rl.held_out);
  if (!rl.held_out.empty() && rl.held_out.size() != rl.tasks.size())
    table->wrong("held_out", fmt::format("a file for each of the {} classes in tasks", rl.tasks.size()));
  table->integer("held_out_tasks", rl.held_out_tasks, 1, 1 << 20);
  table->integer("prompts_per_step", rl.prompts_per_step, 1, 1 << 20);
  table->integer("samples", rl.samples, 2, 1 << 16);
  table->integer("branches", rl.branches, 1, 1 << 16);
  if (rl.branches > 0 && rl.samples % rl.branches != 0)
    table->wrong("branches", fmt::format("a divisor of rl.samples ({})", rl.samples));
  table->integer("max_tokens", rl.max_tokens, 1, 1 << 24);
  table->integer("sequences", rl.sequences, 1, 1 << 16);
  table->integer("updates", rl.updates, 1, 1000);
  table->real("temperature", rl.temperature, {.lowest = 0, .highest = 100, .above = true});
  table->real("min_p", rl.min_p, {.lowest = 0, .highest = 1});
  if (table->has("code_temperature"))
    table->real("code_temperature", rl.code_temperature.emplace(0), {.lowest = 0, .highest = 100});
  if (table->has("staleness")) table->integer("staleness", rl.staleness.emplace(0), 0, 1);
  table->real("importance_limit", rl.importance_limit, {.lowest = 1, .highest = 1e6});
  table->integer("judge_gpu", rl.judge_gpu, 0, 1023);
  table->integer("judge_jobs", rl.judge_jobs, 1, 1024);
  table->integer("trials", rl.trials, 1, 100);
  table->boolean("fast_inputs", rl.fast_inputs);
  table->choice<RlSettings::Times>(
      "times", rl.times, {{"together", RlSettings::Times::kTogether}, {"apart", RlSettings::Times::kApart}});
  table->real("timing_seconds", rl.timing_seconds, {.lowest = 0.001, .highest = 60});
  table->choice<std::string>("policy", rl.policy,
                             {{"strict", "strict"}, {"mostly", "mostly"}, {"hybrid", "hybrid"}});
  table->boolean("rule_reward", rl.rule_reward);
  table->choice<std::string>("judge_device", rl.judge_device,
                             {{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}});
  table->real("time_limit", rl.time_limit, {.lowest = 0, .highest = 3600, .above = true});
  table->real("straggler_timeout_s", rl.straggler_timeout_s, {.lowest = 0, .highest = 3600});
  table->text("recorded_answers", rl.recorded_answers);
  if (!rl.recorded_answers.empty() && (rl.turns > 1 || rl.branches > 1 || !rl.held_out.empty()))
    table->wrong("recorded_answers", "neither turns, nor branches, nor held_out with it");
}

void read_sft_mix(TomlTable& root, std::optional<SftMixSettings>& sft_mix) {
  auto table = root.table("sft_mix");
  if (!table) return;
  auto& mix = sft_mix.emplace();
  table->required("train", "an array of folders that `nereid train data` wrote");
  table->texts("train", mix.train);
  if (table->has("train") && mix.train.empty()) table->wrong("train", "at least one folder");
  table->required("rows", "how many rows each update takes");
  table->integer("rows", mix.rows, 1, 1 << 20);
  table->real("weight", mix.weight, {.lowest = 0, .highest = 1e6, .above = true});
}

void read_curriculum(TomlTable& root, const RlSettings& rl, CurriculumSettings& curriculum) {
  curriculum.classes = std::max<int64_t>(std::ssize(rl.tasks), 1);
  auto table = root.table("curriculum");
  if (!table) return;
  using Kind = CurriculumSettings::Kind;
  table->choice<Kind>("kind", curriculum.kind,
                      {{"levels", Kind::kLevels}, {"mixture", Kind::kMixture}, {"learnt", Kind::kLearnt}});
  switch (curriculum.kind) {
    case Kind::kLevels:
      table->real("promote_at", curriculum.promote_at, {.lowest = 0, .highest = 1});
      if (curriculum.classes > 1 && rl.held_out.empty())
        table->wrong("kind", "rl.held_out: levels are gone through by held-out pass@1");
      break;
    case Kind::kMixture: {
      table->required("shares", "a number for each class");
      table->reals("shares", curriculum.shares, {.lowest = 0, .highest = 1e6});
      double sum = 0;
      for (const double share : curriculum.shares) sum += share;
      if (std::ssize(curriculum.shares) != curriculum.classes || sum <= 0)
        table->wrong("shares",
                     fmt::format("a number for each of {} classes, not all zero", curriculum.classes));
      break;
    }
    case Kind::kLearnt:
      table->real("min_share", curriculum.min_share, {.lowest = 0, .highest = 1});
      table->real("memory", curriculum.memory, {.lowest = 4, .highest = 1e9});
      break;
  }
}

}  // namespace

Result<RlRun> parse_rl_file(std::string_view text, const std::string& name, std::vector<TomlKey>* keys) {
  RlRun found;
  const auto read = [&](TomlTable& root) {
    read_rl(root, found.rl);
    read_sft_mix(root, found.sft_mix);
    read_curriculum(root, found.rl, found.curriculum);
  };
  NEREID_TRY(found.run, parse_run_file(text, name, {.read = read, .own_data = true, .keys = keys}));
  if (found.run.machine.shard_parameters)
    return input_error("{}: machine.shard_parameters: expected false: the engine needs whole weights", name);
  if (found.run.model.service && !found.rl.recorded_answers.empty())
    return input_error("{}: rl.recorded_answers: expected a model of this host with it", name);
  return found;
}

}  // namespace nereid::train
