#include "nereid/cli/commands/skills_measure.h"

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/program/included_files.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/output.h"
#include "nereid/eval/suite.h"
#include "nereid/skills/admission.h"
#include "nereid/skills/learn.h"
#include "nereid/skills/skilled_proposer.h"
#include "nereid/verify/batch/answer.h"

namespace nereid::cli {
namespace {

constexpr double kTraceSeconds = 600;    // of one task
constexpr double kVerdictSeconds = 600;  // of one answer
constexpr double kWritingSeconds = 900;  // of one skill

// With the proposer that was named, if any, and the clock that was asked for.
Result<std::unique_ptr<SearchSetup>> setup_for(const SkillsOptions& options) {
  SearchFlags flags = options.search;
  flags.proposers = options.proposer.empty() ? "compiler" : options.proposer;
  flags.untimed = options.clock == "model";
  NEREID_TRY(auto setup, SearchSetup::make(flags, options.jobs));
  if (!setup->evaluator->settings().time && options.clock != "model")
    return input_error(
        "--clock measured needs a GPU, which is not used here; expected --clock model, the cost "
        "model's times");
  return setup;
}

// Every task of the folder that can be traced; others are named on stderr.
Result<std::vector<std::unique_ptr<const search::Task>>> traced_tasks(search::Evaluator& evaluator,
                                                                      const std::string& folder,
                                                                      Progress& progress) {
  NEREID_TRY(const auto files, eval::find_tasks(folder));
  std::vector<std::unique_ptr<const search::Task>> tasks;
  for (const auto& file : files) {
    progress.say("tracing " + file.id);
    NEREID_TRY(std::string text, read_file(file.path, size_t{64} << 20));
    NEREID_TRY(const std::string source, task_with_files(std::move(text), file.path));
    auto task = evaluator.trace(file.path.filename().string(), source, Deadline::after(kTraceSeconds));
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (task.ok())
      tasks.push_back(*std::move(task));
    else
      progress.note(task.error().message);
  }
  return tasks;
}

Json decided_json(const skills::Decision& decision) {
  const auto evidence = parse_json(decision.document, "evidence");
  return {{"name", decision.skill},
          {"version", decision.version},
          {"state", to_string(decision.state)},
          {"evidence", evidence.ok() ? *evidence : Json()}};
}

std::string decided_text(const skills::Decision& decision) {
  const Json json = decided_json(decision);
  std::string text =
      fmt::format("{} version {}: {}", decision.skill, decision.version, to_string(decision.state));
  if (json["evidence"].value("clock", "") == "model") text += " (times of the cost model)";
  text += fmt::format("\n  {}\n", json["evidence"].value("reason", ""));
  for (const auto& task : json["evidence"].value("tasks", Json::array()))
    text +=
        fmt::format("  {:32} {:>6}   verified {:.0f} % with, {:.0f} % without\n", task.value("name", ""),
                    task["speedup"].is_number() ? fmt::format("{:.2f}x", task["speedup"].get<double>()) : "-",
                    100 * task.value("verified_with", 0.0), 100 * task.value("verified_without", 0.0));
  return text;
}

Result<Answer> admit(const SkillsOptions& options, bool json) {
  NEREID_TRY(const auto library, open_library(options.address));
  // The latest version where none is named: the one that is not decided.
  NEREID_TRY(auto entry, find_skill(*library, options.name, options.version));
  if (options.version == 0) {
    NEREID_TRY(const auto latest, library->list());
    for (const auto& one : latest)
      if (one.skill.name == options.name) entry = one;
  }
  if (entry.state == skills::State::kRemoved)
    return input_error("'{}' version {} is removed; `nereid skills add` makes a new version", options.name,
                       entry.version);
  NEREID_TRY(const auto setup, setup_for(options));
  if (setup->proposers.size() != 1 || !setup->proposers.front()->samples())
    return input_error("--proposer: expected one language model (http, model), got {}", options.proposer);
  auto& model = *setup->proposers.front();
  const bool timed = setup->evaluator->settings().time;
  Progress progress("skills admit " + options.name);
  NEREID_TRY(const auto all, traced_tasks(*setup->evaluator, options.tasks, progress));
  const auto tasks = skills::tasks_for(entry.skill, all);
  NEREID_TRY(auto prompts, skill_prompts(std::string(model.name()), options.search, setup->installation));
  skills::SkilledProposer with(model, {{.entry = entry}}, std::move(prompts), {.without = 0, .all = true});
  int64_t judged = 0;
  skills::AdmissionOptions how{
      .question = skill_question("admission", model, options.search, setup->hardware, timed),
      .modelled = !timed,
      .samples = options.samples,
      .jobs = options.jobs,
      .report = [&](const skills::Sample& sample) {
        progress.say(fmt::format(
            "{} of {} samples, the last {} {}", ++judged, 2 * options.samples * std::ssize(tasks),
            sample.skill.empty() ? "without" : "with", sample.verified ? "verified" : "not verified"));
      }};
  const Ticker ticker(progress, [&] { return setup->at_work(); });
  NEREID_TRY(const auto decision, skills::admit(*library, entry, *setup->evaluator, with, model, tasks, how));
  NEREID_TRY(const auto evicted, skills::settle(*library, options.capacity));
  Json result = decided_json(decision);
  result["evicted"] = Json::array();
  std::string text = decided_text(decision);
  for (const auto& one : evicted) {
    result["evicted"].push_back(decided_json(one));
    text += decided_text(one);
  }
  NEREID_TRY_STATUS(json ? write_stdout(json_line(result)) : write_text(text));
  const bool stays =
      std::ranges::none_of(evicted, [&](const skills::Decision& one) { return one.skill == decision.skill; });
  return decision.state == skills::State::kAdmitted && stays ? Answer::kYes : Answer::kNo;
}

// The two files, judged.
Result<skills::AnswerPair> pair_of_files(const SkillsOptions& options, search::Evaluator& evaluator) {
  NEREID_TRY(const std::string source, read_module(options.task, options.module));
  const std::string name = std::filesystem::path(options.task).filename().string();
  NEREID_TRY(const auto task, evaluator.trace(name, source, Deadline::after(kTraceSeconds)));
  std::vector<skills::VerifiedAnswer> answers;
  for (const auto& file : {options.slower, options.faster}) {
    NEREID_TRY(std::string text, read_file(file, verify::kMaxAnswerBytes));
    skills::VerifiedAnswer one{.text = std::move(text), .answer = !file.ends_with(".py")};
    one.judged = evaluator.judge(*task, "given", {.text = one.text, .answer = one.answer},
                                 Deadline::after(kVerdictSeconds));
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (!one.judged.verified())
      return input_error("{}: expected a verified answer to {}, got {}: {}", file, options.task,
                         to_string(one.judged.kind), one.judged.reason);
    answers.push_back(std::move(one));
  }
  return skills::pair_of(source, std::move(answers[0]), std::move(answers[1]));
}

Result<Answer> learn(const SkillsOptions& options, bool json) {
  const int named = !options.task.empty() + !options.slower.empty() + !options.faster.empty();
  if (named != 0 && named != 3)
    return input_error("expected TASK, SLOWER and FASTER, or none of them for pairs of the store of results");
  NEREID_TRY(const auto library, open_library(options.address));
  NEREID_TRY(const auto setup, setup_for(options));
  std::vector<skills::AnswerPair> pairs;
  if (named == 3) {
    NEREID_TRY(pairs.emplace_back(), pair_of_files(options, *setup->evaluator));
  } else {
    if (!setup->store) return input_error("expected a store of results, got none");
    NEREID_TRY(pairs, skills::pairs_in(*setup->store, static_cast<size_t>(options.pairs)));
  }
  std::string text;
  for (const auto& pair : pairs) {
    NEREID_TRY(const auto task,
               setup->evaluator->trace("task.py", pair.task, Deadline::after(kTraceSeconds)));
    skills::Skill skill = skills::skill_from_difference(pair, *task);
    if (!options.proposer.empty()) {
      auto& model = *setup->proposers.front();
      NEREID_TRY(const auto prompts,
                 skill_prompts(std::string(model.name()), options.search, setup->installation));
      auto worded = skills::skill_from_model(model, prompts, pair, *task, Deadline::after(kWritingSeconds));
      if (!worded.ok() && worded.error().blame != Blame::kInput) return worded.error();
      if (worded.ok())
        skill = *std::move(worded);
      else
        fmt::print(stderr, "nereid: {}: written from the difference instead: {}\n", skill.name,
                   printable(worded.error().message));
    }
    NEREID_TRY(const auto entry, library->add(skill));
    if (json)
      text += json_line(entry_json(entry, {}));
    else
      text += fmt::format("{} version {}: {}, from answers of which one is {:.2f} times as fast{}\n",
                          skill.name, entry.version, to_string(entry.state), pair.speedup,
                          pair.modelled ? " (by the cost model)" : "");
  }
  if (pairs.empty())
    fmt::print(stderr, "{} holds no two verified answers to one task of which one is {:g} times as fast\n",
               setup->store ? setup->store->name() : "the store", skills::kMinGain);
  NEREID_TRY_STATUS(json ? write_stdout(text) : write_text(text));
  return pairs.empty() ? Answer::kNo : Answer::kYes;
}

void add_model_flags(CLI::App& command, SkillsOptions& options) {
  SearchFlags& search = options.search;
  command.add_option("--model", search.model,
                     "Checkpoint folder of the model proposer (default: the shipped model)");
  command
      .add_option("--model-device", search.model_device,
                  "Device of the model proposer (default: as --device)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option("--clock", options.clock,
                  "Times of answers: measured (a GPU) or model (the cost model, marked so)")
      ->check(CLI::IsMember({"measured", "model"}))
      ->capture_default_str();
  command.option_defaults()->group("Verdict");
  add_verification_flags(command, search);
  command.option_defaults()->group("Earlier results");
  command.add_option("--results", search.store,
                     "Store of results, a file or a postgresql:// URI (see `nereid store --help`)");
  command.add_flag("--fresh", search.fresh, "Ignore earlier answers and verdicts of the store of results");
  command.add_flag("--no-results", search.forget, "Neither read nor write the store of results");
  command.option_defaults()->group("Options");
}

}  // namespace

void add_skill_measurements(CommandGroup<SkillsOptions>& skills) {
  SkillsOptions& options = skills.options();
  CLI::App& learning =
      skills.add("learn", "Write a candidate from a slower and a faster verified answer", learn);
  learning.add_option("TASK", options.task, "Task file (default: pairs of the store of results)");
  learning.add_option("SLOWER", options.slower, "An answer: a .py file, or a model's raw answer");
  learning.add_option("FASTER", options.faster, "Another answer, at least 1.2 times as fast");
  learning
      .add_option("--proposer", options.proposer,
                  "Language model that writes the text: http, model (default: the difference in words)")
      ->check(CLI::IsMember({"http", "model"}));
  learning.add_option("--pairs", options.pairs, "Maximum pairs from the store, the largest gain first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_model_flags(learning, options);
  add_module_flags(learning, options.module);

  CLI::App& admitting =
      skills.add("admit", "Measure a skill on held-out tasks; admit it if answers get faster", admit);
  admitting.add_option("NAME", options.name, "The skill's name")->required();
  admitting.add_option("--version", options.version, "Its version (default: the latest)")
      ->check(CLI::Range(int64_t{1}, INT64_MAX));
  admitting
      .add_option("--tasks", options.tasks,
                  "Folder of held-out tasks; only tasks with the skill's operators are used")
      ->required();
  admitting
      .add_option("--proposer", options.proposer,
                  "Language model that is measured with and without the skill: http or model")
      ->check(CLI::IsMember({"http", "model"}))
      ->required();
  admitting.add_option("--samples", options.samples, "Samples of each task, with and without the skill")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  admitting.add_option("--jobs", options.jobs, "Tasks in parallel")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  admitting.add_option("--capacity", options.capacity, "Admitted skills that the library keeps: the best")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_model_flags(admitting, options);
}

}  // namespace nereid::cli
