#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>
#include <thread>

#include "nereid/base/json.h"
#include "nereid/base/number_option.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/output.h"
#include "nereid/train/rl/objective/advantages.h"
#include "nereid/verify/batch/batch.h"
#include "nereid/verify/stages/pipeline.h"
#include "nereid/verify/stages/shrink.h"
#include "nereid/verify/stages/verifier_processes.h"
#include "nereid/verify/verdict_format.h"

namespace nereid::cli {
namespace {

constexpr const char* kVerifyExamples =
    R"(The verdict is the first that applies: Malformed, Untraceable, CompileFailed, Disallowed, Unsafe,
Mismatch, TimedOut, Verified. Error means that there is no verdict. docs/verdicts.md explains each, with
fixes.

REFERENCE is a file with class Model, get_inputs() and get_init_inputs(). CANDIDATE is a .py file with class
ModelNew. A file with any other extension is a model's answer, whose last complete code block counts.

Examples:
  nereid verify softmax.py my_softmax.py                 one verdict
  nereid verify softmax.py answer.md --explain           with evidence and source excerpts
  nereid verify softmax.py my_softmax.py --json | jq .verdict
  nereid verify big.py my_big.py --shrink                at sizes that a CPU can hold
  nereid verify softmax.py my_softmax.py --also-at ROWS=1,COLS=77    also at another size
  nereid verify a.py b.py --policy strict --seed 7       no PyTorch in forward; a reproducible run
  nereid verify --batch pairs.jsonl -o verdicts.jsonl    many in parallel; the same command resumes
  nereid verify --batch -                                requests on stdin, verdicts on stdout

A line of pairs.jsonl: {"id": "1", "reference": "softmax.py", "candidate_source": "import torch ..."}.
docs/batch_protocol.md has all keys of a line and all fields of an answer. --batch FOLDER pairs every
reference.py with the other files of its folder.)";

struct VerifyOptions : VerificationFlags {
  std::string reference, candidate, batch, output;
  std::optional<uint64_t> seed;
  int jobs = 0;
  std::optional<double> rtol, atol;
  double timing_seconds = 0, timing_width = 0.02;
  int compile_for = 0;
  std::string traces;
  std::vector<std::string> also_at;  // "N=64,M=3" each
  bool allow_tf32 = false, time = false, ignore_rules = false, shrink = false, explain = false, json = false;
  bool fast_inputs = false, time_only = false;
  ModuleFlags module;
  std::string reward;
  double speedup_limit = 2;
};

// The reward of an answer by itself. Its advantage in its group is the trainer's to compute.
Json reward_json(const VerifyOptions& options, const verify::Verdict& verdict) {
  const auto& times = verdict.without_rules ? verdict.without_rules->times : verdict.times;
  const auto judged = train::judged_of(verdict.without_rules ? verdict.without_rules->kind : verdict.kind,
                                       times ? times->speedup : 0);
  const auto split = train::split_reward(judged, options.speedup_limit);
  const double code =
      options.reward == "binary" || options.reward == "hierarchical" ? split.code : split.plan;
  const double plan = options.reward == "binary" ? split.code : split.plan;
  return {{"objective", options.reward},
          {"valid", judged.valid},
          {"correct", judged.correct},
          {"speedup", times && judged.correct ? Json(times->speedup) : Json()},
          {"plan", plan},
          {"code", code}};
}

Result<verify::Settings> settings_of(const VerifyOptions& options) {
  verify::Settings settings;
  settings.policy = *verify::policy_from_string(options.policy);
  settings.protocol = *verify::protocol_from_string(options.protocol);
  settings.trials = options.trials;
  settings.forbid = {options.forbid.begin(), options.forbid.end()};
  settings.seed = options.seed ? *options.seed : fresh_seed();
  settings.time_limit = options.time_limit;
  settings.verdict_limit = options.verdict_limit;
  settings.shrink = options.shrink;
  settings.time = options.time || options.time_only;
  settings.time_only = options.time_only;
  settings.fast_inputs = options.fast_inputs;
  settings.timing_width = options.timing_width;
  settings.compile_for = options.compile_for;
  settings.traces = options.traces;
  settings.ignore_rules = options.ignore_rules;
  settings.tolerance.rtol = options.rtol;
  settings.tolerance.atol = options.atol;
  settings.tolerance.allow_tf32 = options.allow_tf32;
  NEREID_TRY(settings.device, device_from(options.device));
  if (settings.time && settings.device != replay::Device::kCuda)
    return input_error("{} needs a GPU", options.time_only ? "--time-only" : "--time");
  if (settings.compile_for > 0 && settings.device != replay::Device::kCpu)
    return input_error(
        "--compile-for: expected --device cpu; on a GPU kernels are compiled for it in any case");
  return settings;
}

// "N=64,M=3". Each name is a module-level integer of the reference, as --shrink reads them.
Result<verify::Sizes> sizes_from(const std::string& text, const std::string& reference) {
  const auto constants = verify::module_constants(reference);
  verify::Sizes sizes;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    int64_t value = 0;
    const char* end = item.data() + item.size();
    const char* digits = equals == item.npos ? end : item.data() + equals + 1;
    if (const auto read = std::from_chars(digits, end, value);
        digits == end || read.ec != std::errc() || read.ptr != end)
      return input_error("--also-at {}: expected NAME=INTEGER[,NAME=INTEGER...], got '{}'", text, item);
    std::string known;
    for (const auto& constant : constants) known += (known.empty() ? "" : ", ") + constant.name;
    if (std::ranges::find(constants, name, &verify::Constant::name) == constants.end())
      return input_error("--also-at {}: the reference has no module-level integer {} (it has {})", text, name,
                         known.empty() ? "none" : known);
    sizes[name] = value;
  }
  if (sizes.empty()) return input_error("--also-at: expected NAME=INTEGER[,NAME=INTEGER...], got nothing");
  return sizes;
}

struct AlsoAt {
  std::string text;
  verify::Sizes sizes;
  verify::Verdict verdict;
};

Result<Answer> one(const VerifyOptions& options) {
  NEREID_TRY(auto settings, settings_of(options));
  NEREID_TRY(auto pair, verify::read_pair(options.reference, options.candidate));
  NEREID_TRY(pair.reference_source, read_module(options.reference, options.module));
  NEREID_TRY(pair.candidate_text, with_includes_of_candidate(std::move(pair.candidate_text), options.module));
  NEREID_TRY(const auto processes, verify::VerifierProcesses::open({.jobs = 2, .device = settings.device}));
  verify::Judge judge(processes->backends(), settings);
  std::vector<AlsoAt> others;
  for (const auto& text : options.also_at) {
    NEREID_TRY(auto sizes, sizes_from(text, pair.reference_source));
    others.push_back({text, std::move(sizes), {}});
  }
  end_soon_after_interrupt(kSecondsToEnd, "interrupted");
  verify::Verdict verdict;
  {
    Progress progress("verify " + options.candidate);
    const Ticker ticker(progress);
    verdict = judge.judge(pair);
    for (AlsoAt& other : others) {
      if (interrupted()) break;
      progress.say("at " + other.text);
      verify::Pair there = pair;
      there.sizes = other.sizes;
      other.verdict = judge.judge(there);
    }
  }
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  if (options.json) {
    Json json = to_json(verdict);
    for (const AlsoAt& other : others) {
      Json there = to_json(other.verdict);
      there["at"] = other.sizes;
      json["also_at"].push_back(std::move(there));
    }
    NEREID_TRY_STATUS(write_stdout(json_line(json)));
  } else {
    const verify::VerdictFormat format{.color = Terminal::of_stdout().colour,
                                       .explain = options.explain,
                                       .source_of = [&](const std::string& file) -> std::string_view {
                                         if (file == pair.candidate_name) return pair.candidate_text;
                                         if (file == pair.reference_name) return pair.reference_source;
                                         return "";
                                       }};
    NEREID_TRY_STATUS(write_stdout(verify::format_verdict(verdict, format)));
    for (const AlsoAt& other : others)
      NEREID_TRY_STATUS(
          write_stdout(fmt::format("At {}:\n{}", other.text, verify::format_verdict(other.verdict, format))));
  }
  int code = exit_code(verdict);
  for (const AlsoAt& other : others) code = std::max(code, exit_code(other.verdict));
  return static_cast<Answer>(code);
}

Result<Answer> many(const VerifyOptions& options) {
  const ModuleFlags& module = options.module;
  if (!module.include.empty() || !(module.class_name + module.init + module.inputs).empty())
    return input_error("--include, --class, --init and --inputs: expected one pair, got --batch");
  if (!options.output.empty()) NEREID_TRY_STATUS(can_be_written("-o", options.output));
  NEREID_TRY(auto settings, settings_of(options));
  NEREID_TRY(auto reader, verify::BatchReader::open(options.batch));
  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  settings.threads = jobs > 1 ? 1 : 0;
  settings.timing_seconds =
      options.timing_seconds > 0 ? options.timing_seconds : 0.1;  // of many, each a little
  NEREID_TRY(const auto processes,
             verify::VerifierProcesses::open(
                 {.jobs = jobs, .device = settings.device, .compile_for = settings.compile_for}));
  verify::Judge judge(processes->backends(), settings);
  Progress progress("verify " + options.batch);
  end_soon_after_interrupt(
      kSecondsToEnd, options.output.empty() ? "interrupted" : "interrupted; run the same command to resume");
  Result<verify::BatchSummary> summary = our_error("not run");
  {
    const Ticker ticker(progress);
    int64_t done = 0;
    summary = verify::run_batch(
        reader, [&](const verify::Pair& pair) { return judge.judge(pair); },
        {.jobs = jobs,
         .output = options.output,
         .stream = [](const std::string& text) { return stream_stdout(text); },
         .complete =
             [&](const verify::Verdict& verdict, Json& line) {
               if (!options.reward.empty()) line["reward"] = reward_json(options, verdict);
             },
         .on_verdict =
             [&](const verify::Verdict& verdict) {
               progress.say(fmt::format("{} done, the last {}", ++done, to_string(verdict.kind)));
             }});
  }
  if (!summary.ok()) return summary.error();
  std::string counts;
  for (const auto& [word, count] : summary->verdicts)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, word);
  fmt::print(stderr, "{}{} (seed {})\n", counts.empty() ? "nothing to do" : counts,
             summary->skipped > 0 ? fmt::format("; {} were there already", summary->skipped) : "",
             settings.seed);
  if (summary->our_errors > 0) return Answer::kOurError;
  return summary->input_errors > 0 ? Answer::kBadInput : Answer::kYes;
}

void add_batch_options(CLI::App& command, VerifyOptions& options) {
  command.option_defaults()->group("Many pairs");
  command.add_option("--batch", options.batch, "Judge many pairs: FILE.jsonl, a folder, or - for stdin");
  command.add_option("-o,--output", options.output,
                     "With --batch: append to this file, and skip pairs that it holds");
  command
      .add_option("--jobs", options.jobs, "With --batch: pairs judged in parallel (default: one per core)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--reward", options.reward,
                  "With --batch: add rewards of plan and code: binary, hierarchical or uniform "
                  "(docs/batch_protocol.md)")
      ->check(CLI::IsMember({"binary", "hierarchical", "uniform"}));
  command.add_option("--speedup-limit", options.speedup_limit, "With --reward: upper limit of the speed-up")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command
      .add_option("--traces", options.traces,
                  "With --batch: folder for the traces of Verified candidates; --time-only with the same "
                  "seed reads them")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--compile-for", options.compile_for,
                  "With --batch on a CPU: compile kernels of Verified candidates for this compute capability "
                  "(90: 9.0), for a later --time-only")
      ->check(CLI::Range(70, 999));
  command.add_flag("--time-only", options.time_only,
                   "With --batch: time candidates that an earlier run Verified, each reference once; a "
                   "line's `trace` must be that verdict's");
}

void add_options(CLI::App& command, VerifyOptions& options) {
  command.add_option("REFERENCE", options.reference,
                     "Task file: class Model, get_inputs(), get_init_inputs()");
  command.add_option("CANDIDATE", options.candidate,
                     "Candidate file: class ModelNew, or a text with a code block");

  command.option_defaults()->group("Task");
  add_module_flags(command, options.module);
  command.add_flag("--shrink", options.shrink,
                   "Trace both files with smaller module-level integers, so that the task fits into memory");
  command.add_option("--also-at", options.also_at,
                     "NAME=VALUE,...: judge the candidate at these module-level integers, too; repeatable");

  command.option_defaults()->group("Verdict");
  add_verification_flags(command, options);
  command
      .add_option("--seed", options.seed,
                  "Seed of the random inputs; every verdict shows its seed (default: fresh)")
      ->check(a_seed());
  command
      .add_option("--rtol", options.rtol,
                  "Relative tolerance; replaces docs/tolerance.md by |got - want| <= atol + rtol |want|")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--atol", options.atol, "Absolute tolerance; see --rtol")->check(CLI::NonNegativeNumber);
  command.add_flag("--allow-tf32", options.allow_tf32,
                   "Allow TF32 in float32 contractions, as PyTorch's `high` precision does");
  command.add_flag(
      "--fast-inputs", options.fast_inputs,
      "Use few input distributions: huge, outliers, negative; above 256 MiB of inputs only huge, "
      "and one draw of the task's own");
  command.add_flag("--ignore-rules", options.ignore_rules,
                   "Add `verdict_without_rules` of Disallowed candidates to --json and --batch");
  command.add_flag("--explain", options.explain, "Print the evidence in prose, with source excerpts");

  command.option_defaults()->group("Times");
  command.add_flag("--time", options.time, "Measure the times of candidate and reference (GPU only)");
  command
      .add_option("--timing-seconds", options.timing_seconds,
                  "With --batch: time for sampling one pair, in seconds (default: 0.1)")
      ->check(CLI::Range(0.001, 60.0));
  command
      .add_option("--timing-width", options.timing_width,
                  "Sampling ends at this width of the speed-up's 95 % interval, as a share of the speed-up")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  add_batch_options(command, options);
  command.option_defaults()->group("Options");
}

}  // namespace

void add_verify_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Judge a candidate against its reference: one verdict, with evidence");
  command->footer(kVerifyExamples);
  add_options(*command, *options);
  add_json_flag(*command, chosen, "Print the verdict as one JSON object");
  command->callback([options, &chosen] {
    const bool pair = !options->reference.empty() && !options->candidate.empty();
    if (options->batch.empty() ? !pair : !options->reference.empty())
      throw CLI::ValidationError("verify", "expected REFERENCE and CANDIDATE, or --batch");
    if (!options->also_at.empty() && !options->batch.empty())
      throw CLI::ValidationError("--also-at", "not with --batch");
    if (!options->reward.empty() && options->batch.empty())
      throw CLI::ValidationError("--reward", "only with --batch");
    if (!options->output.empty() && options->batch.empty())
      throw CLI::ValidationError("-o", "only with --batch");
    if ((options->time_only || options->timing_seconds > 0) && options->batch.empty())
      throw CLI::ValidationError(options->time_only ? "--time-only" : "--timing-seconds",
                                 "only with --batch");
    if ((options->compile_for > 0 || !options->traces.empty()) && options->batch.empty())
      throw CLI::ValidationError(options->compile_for > 0 ? "--compile-for" : "--traces",
                                 "only with --batch");
    options->json = chosen.json;
    chosen.run = [options] { return options->batch.empty() ? one(*options) : many(*options); };
  });
}

}  // namespace nereid::cli
