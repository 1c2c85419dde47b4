#include <CLI/CLI.hpp>
#include <memory>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/commands/train_pairs.h"
#include "nereid/cli/language_model.h"
#include "nereid/cli/output.h"
#include "nereid/lm/chat/prompts.h"
#include "nereid/train/data/shard_maker.h"
#include "nereid/train/rl/objective/run_file_keys.h"

namespace nereid::cli {
namespace {

constexpr const char* kTrainExamples = R"(Examples:
  nereid synth --operators 1 --count 200 --held-out 0.1 --pairs --brief --max-elements 2^14 --max-work 2^18 \
      -o tiny.jsonl
  nereid train data tiny.jsonl -o data/tiny/train -t models/small/tokenizer.json --split train
  nereid train data tiny.jsonl -o data/tiny/held_out -t models/small/tokenizer.json --split held-out
  nereid train check runs/tiny.toml                before the first step: data, lengths, vocabulary, model
  nereid train sft runs/tiny.toml                  on a CPU in minutes; the same command resumes
  nereid train sft runs/tiny.toml --json | jq .loss
  nereid train rl runs/tiny-rl.toml                rewards are verdicts
  nereid train sft runs/small-sft.toml --ranks 2   on two GPUs
  nereid runs page training/tiny -o tiny.html

docs/data.md: lines and token shards. docs/sft.md: run files and what a run writes. docs/rl.md: objectives.)";
constexpr const char* kDataExamples = R"(Examples:
  nereid train data tiny.jsonl -o data/tiny/train -t models/small/tokenizer.json --split train
  nereid train data tiny.jsonl -o data/tiny/held_out -t models/small/tokenizer.json --split held-out

docs/data.md describes the lines and the token shards.)";
constexpr const char* kKeysExamples = R"(Example:
  nereid train keys | grep ^rl

docs/run_files.md is the same list.)";
constexpr const char* kCheckExamples = R"(Example:
  nereid train check runs/tiny.toml    before the first step: data, lengths, vocabulary, model

Exit code 2: the run file, its data or its model is wrong; the reason is printed.)";
constexpr const char* kSftExamples = R"(Examples:
  nereid train sft runs/tiny.toml                  on a CPU in minutes; the same command resumes
  nereid train sft runs/tiny.toml --json | jq .loss
  nereid train sft runs/small-sft.toml --ranks 2   on two GPUs

docs/sft.md describes run files and what a run writes.)";
constexpr const char* kRlExamples = R"(Examples:
  nereid train rl runs/tiny-rl.toml                rewards are verdicts; the same command resumes
  nereid train rl runs/small-rl.toml --ranks 2     on two GPUs

docs/rl.md describes objectives and rewards, docs/sft.md what a run writes.)";

struct TrainDataOptions {
  std::vector<std::string> inputs;
  std::string output, tokenizer, split;
  int64_t longest = 32'768;
  uint64_t shard_tokens = 1 << 26;
  int threads = 0;
  bool without_plans = false;
};

Json list_json(const TrainDataOptions& options, const train::ShardSummary& made, double seconds) {
  uint64_t documents = 0, tokens = 0, answers = 0;
  for (const auto& shard : made.list.shards)
    documents += shard.documents, tokens += shard.tokens, answers += shard.answer_tokens;
  return {{"folder", options.output},
          {"shards", made.list.shards.size()},
          {"documents", documents},
          {"tokens", tokens},
          {"answer_tokens", answers},
          {"left_out", made.list.left_out},
          {"vocab_size", made.list.vocab_size},
          {"tokenizer", made.list.tokenizer},
          {"seconds", seconds},
          {"resumed_shards", made.resumed_shards}};
}

Result<Answer> make_data(const TrainDataOptions& options, bool json) {
  NEREID_TRY(const auto installation, Installation::locate());
  const auto usual = installation.package / "prompts";
  const auto own = std::filesystem::path(options.tokenizer).parent_path();
  NEREID_TRY(const auto prompts, lm::Prompts::load(lm::prompts_of(own, usual)));
  train::ShardMakerSettings settings{.inputs = options.inputs,
                                     .folder = options.output,
                                     .tokenizer = options.tokenizer,
                                     .examples = {},
                                     .asked_with = prompts.system + prompts.task,
                                     .longest = options.longest,
                                     .shard_tokens = options.shard_tokens,
                                     .threads = options.threads};
  settings.examples.split = options.split;
  settings.examples.without_plans = options.without_plans;
  // As `optimize` asks a model.
  settings.examples.ask = [&](const std::string& source) { return prompts.ask("model.py", source); };
  const Stopwatch clock;
  constexpr uint64_t kMegabyte = 1'000'000;
  std::optional<Progress> progress;
  uint64_t reported = 0;
  settings.report = [&](uint64_t bytes, uint64_t of) {
    if (!progress) progress.emplace("train data, MB", static_cast<int64_t>(of / kMegabyte));
    progress->advance(static_cast<int64_t>(bytes / kMegabyte - reported));
    reported = bytes / kMegabyte;
  };
  NEREID_TRY(const auto made, train::make_shards(settings));
  progress.reset();
  const Json summary = list_json(options, made, clock.seconds());
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line(summary)));
    return Answer::kYes;
  }
  std::string text =
      fmt::format("{}: {} documents of {} tokens, {} in answers, in {} shards\n", options.output,
                  summary["documents"].get<uint64_t>(), summary["tokens"].get<uint64_t>(),
                  summary["answer_tokens"].get<uint64_t>(), made.list.shards.size());
  for (const auto& [why, count] : made.list.left_out)
    text += fmt::format("  left out: {} that {}\n", count, why);
  NEREID_TRY_STATUS(write_text(text));
  return Answer::kYes;
}

void add_data_command(CLI::App& command, Chosen& chosen) {
  auto options = std::make_shared<TrainDataOptions>();
  auto* data = command.add_subcommand("data", "Write token shards from lines of JSON; resumes");
  data->footer(kDataExamples);
  data->add_option("FILE", options->inputs,
                   "Files of lines: pairs of `nereid synth --pairs`, conversations, or prompts with answers")
      ->required();
  data->add_option("-o,--output", options->output, "Folder of shards")->required();
  data->add_option("-t,--tokenizer", options->tokenizer,
                   "A tokenizer.json; the folder `prompts` next to it holds the model's prompt templates")
      ->required();
  data->add_option("--split", options->split, "Side of the held-out split (default: all lines)")
      ->check(CLI::IsMember({"train", "held-out"}));
  data->add_flag("--without-plans", options->without_plans,
                 "Leave out plans: the <think> block of answers is empty");
  data->add_option("--longest", options->longest, "Maximum tokens of a document; longer ones are skipped")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  data->add_option("--shard-tokens", options->shard_tokens, "Tokens of a shard")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 36))
      ->capture_default_str();
  data->add_option("--threads", options->threads, "Number of threads; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_json_flag(*data, chosen, "Print one JSON object: documents, tokens, answer_tokens, left_out, ...");
  data->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return make_data(*options, chosen.json); }; });
}

// Every key of a run file: one line each, or one object.
Result<Answer> list_keys(bool json) {
  for (const auto& key : train::run_file_keys()) {
    const Json object = {{"key", key.path},       {"type", key.type},       {"default", key.initial},
                         {"run", key.run},        {"where", key.condition}, {"unit", key.unit},
                         {"meaning", key.meaning}};
    NEREID_TRY_STATUS(json ? write_stdout(json_line(object))
                           : write_text(fmt::format("{:32} {:28} {}\n", key.path, key.initial, key.meaning)));
  }
  return Answer::kYes;
}

void add_keys_command(CLI::App& command, Chosen& chosen) {
  auto* keys = command.add_subcommand("keys", "List every key of a run file");
  keys->footer(kKeysExamples);
  add_json_flag(*keys, chosen,
                "Print one JSON object per key: key, type, default, run, where, unit, meaning");
  keys->callback([&chosen] { chosen.run = [&chosen] { return list_keys(chosen.json); }; });
}

struct RunOptions {
  std::string run_file, output, device = "auto";
  int ranks = 1;
  bool accept_changes = false;
};

// A command that becomes `nereid-lm PROGRAM RUN ...`.
void add_run_command(CLI::App& command, Chosen& chosen, const char* name, const char* what,
                     const std::string& program, const char* examples) {
  auto options = std::make_shared<RunOptions>();
  auto* run = command.add_subcommand(name, what);
  run->footer(examples);
  run->add_option("RUN", options->run_file, "A run file")->required();
  run->add_option("-o,--output", options->output, "Run folder (default: training/NAME)");
  run->add_option("--device", options->device, "Device: auto, cpu, cuda or cuda:N")->capture_default_str();
  run->add_option("--ranks", options->ranks, "Number of processes, one per GPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  run->add_flag("--accept-changes", options->accept_changes,
                "Resume with a run file that has other values than the run was begun with");
  add_json_flag(*run, chosen, "Print one JSON object per step: step, loss, tokens_per_s or reward, ...");
  run->callback([options, program, &chosen] {
    chosen.run = [options, program, &chosen] {
      std::vector<std::string> arguments = {program, options->run_file, "--device", options->device};
      if (!options->output.empty()) arguments.insert(arguments.end(), {"-o", options->output});
      if (options->ranks > 1) arguments.insert(arguments.end(), {"--ranks", fmt::to_string(options->ranks)});
      if (options->accept_changes) arguments.push_back("--accept-changes");
      if (chosen.json) arguments.push_back("--json");
      return exec_language_model(std::move(arguments));
    };
  });
}

// `check` becomes `sft` or `rl`, by the tables of the run file, and stops before the first step.
void add_check_command(CLI::App& command, Chosen& chosen) {
  auto options = std::make_shared<RunOptions>();
  auto* check = command.add_subcommand("check", "Check a run file, its data and its model");
  check->footer(kCheckExamples);
  check->add_option("RUN", options->run_file, "A run file")->required();
  check->add_option("--device", options->device, "Device: auto, cpu, cuda or cuda:N")->capture_default_str();
  add_json_flag(*check, chosen, "Print one JSON object: run_file, ready");
  check->callback([options, &chosen] {
    chosen.run = [options, &chosen]() -> Result<Answer> {
      NEREID_TRY(const std::string text, read_file(options->run_file, 1 << 20));
      const bool rl = text.starts_with("[rl") || text.find("\n[rl") != std::string::npos;
      std::vector<std::string> arguments = {rl ? "train-rl" : "train-sft", options->run_file, "--device",
                                            options->device, "--check"};
      if (chosen.json) arguments.push_back("--json");
      return exec_language_model(std::move(arguments));
    };
  });
}

}  // namespace

void add_train_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("train", "Make training data; train language models");
  command->require_subcommand(1);
  add_data_command(*command, chosen);
  add_pairs_command(*command, chosen);
  add_keys_command(*command, chosen);
  add_check_command(*command, chosen);
  add_run_command(*command, chosen, "sft", "Supervised fine-tuning by a run file; resumes", "train-sft",
                  kSftExamples);
  add_run_command(*command, chosen, "rl", "Reinforcement learning by a run file; resumes", "train-rl",
                  kRlExamples);
  command->footer(kTrainExamples);  // after its subcommands, which would inherit it
}

}  // namespace nereid::cli
