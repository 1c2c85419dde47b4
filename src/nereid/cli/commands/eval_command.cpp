#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/cli/search_setup.h"
#include "nereid/eval/evaluation.h"
#include "nereid/eval/page.h"

namespace nereid::cli {
namespace {

constexpr const char* kEvalExamples = R"(Examples:
  nereid eval tasks/ -o results/                          every task below tasks/, with compiler and inductor
  nereid eval tasks/ -o results/ --proposer compiler --policy strict
  nereid eval tasks/ -o results/ --proposer model --once    greedy answers of the shipped model
  nereid eval tasks/ -o results/ --proposer http --samples 8 --repairs 0    pass@1, 2, 4 and 8 of a model
  nereid eval tasks/ -o results/ --json | jq .verified_share
  nereid eval tasks/ -o results/ --once --baselines compile,inductor    against torch.compile and its kernels

A task is a Python file with class Model, get_inputs() and get_init_inputs(). results/ gets results.jsonl (one
line per task, as soon as it is judged), summary.json, page.html and solutions/ (the best verified candidate
of each task). The same command resumes. fast_p and the geometric mean are measured on a GPU, one timing at a
time. Without a GPU they come from the cost model and are marked so.

Exit code 0: every task was judged, whatever the verdicts; 1: some could not be judged (an Error).)";

// PyTorch's times, of many tasks: a little of each mode.
constexpr double kBaselineSampling = 0.06, kBaselinePatience = 120;
constexpr std::ptrdiff_t kMaxNamed = 5;
constexpr int64_t kNoted = 50;  // tasks between lines that stay

struct EvalOptions {
  std::string tasks, output;
  int jobs = 0;
  SearchFlags search;
};

// What the answers depend on besides the tasks and the program.
std::string question_of(const SearchFlags& f, const SearchSetup& setup) {
  std::string model;
  for (const auto* proposer : setup.proposers)
    if (proposer->name() == "model") model = fmt::format(" ({})", proposer->identity());
  return fmt::format("{}{} on {}, policy {}, {} trials, {} samples, {} repairs, {} a task{}{}{}{}{}{}{}",
                     f.proposers, model, setup.hardware, f.policy, f.trials, f.samples, f.repairs,
                     f.budget_text(), f.shrink ? ", shrunk" : "", f.whole_only ? ", whole" : "",
                     f.once ? ", once" : "",
                     fmt::format("{}{}{}", f.first ? ", first" : "", f.speculate ? ", speculating" : "",
                                 f.target_speedup > 0 ? fmt::format(", up to {}x", f.target_speedup) : ""),
                     fmt::format("{}{}{}", f.untimed ? ", untimed" : "", f.allow_tf32 ? ", in TF32" : "",
                                 f.target.empty() ? "" : ", for " + f.target),
                     fmt::format("{}{}", f.model_device.empty() ? "" : ", written on " + f.model_device,
                                 setup.library ? fmt::format(", skills of {} but for {:g} of samples",
                                                             setup.library->where(), f.without_skills)
                                               : ""),
                     f.forbid.empty() ? "" : fmt::format(", without {}", fmt::join(f.forbid, " and ")));
}

// Files below the folder that are no tasks, on stderr.
void report_others(const std::string& folder, const std::vector<std::string>& others) {
  if (others.empty()) return;
  fmt::print(stderr, "{}: {} no task{}, without class Model or get_inputs(): {}{}\n", folder,
             others.size() == 1 ? "1 file is" : fmt::format("{} files are", others.size()),
             others.size() == 1 ? "" : "s",
             fmt::join(others.begin(),
                       others.begin() + std::min<std::ptrdiff_t>(std::ssize(others), kMaxNamed), ", "),
             std::ssize(others) > kMaxNamed ? ", ..." : "");
}

Json report_json(const EvalOptions& options, const SearchSetup& setup, const std::string& question,
                 const eval::Summary& summary, const std::vector<eval::TaskResult>& results) {
  int64_t errors = 0;
  Json list = Json::array();
  for (const auto& r : results) {
    errors += r.verdict == verify::VerdictKind::kError ? 1 : 0;
    list.push_back(eval::to_json(r));
    list.back()["baselines"] = eval::to_json(r.compared);
  }
  Json whole = eval::to_json(summary);
  whole["hardware"] = setup.hardware, whole["versions"] = setup.versions, whole["question"] = question;
  whole["folders"] = Json::object();
  for (const auto& [name, of_folder] : eval::by_folder(results))
    whole["folders"][name] = eval::to_json(of_folder);
  whole["timed_out"] = eval::timed_out(results);
  whole["errors"] = errors, whole["output"] = options.output, whole["results"] = std::move(list);
  return whole;
}

Result<Answer> run(const EvalOptions& options, bool json) {
  NEREID_TRY(const double budget, seconds_from(options.search.budget_text(), "--budget"));
  std::vector<std::string> others;
  NEREID_TRY(const auto tasks, eval::find_tasks(options.tasks, &others));
  report_others(options.tasks, others);
  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  NEREID_TRY(const auto setup, SearchSetup::make(options.search, jobs));
  const std::string question = question_of(options.search, *setup);
  NEREID_TRY(auto modes, baselines_of(options.search, setup->evaluator->settings().device));
  // If anything is timed, both sides are also called from Python.
  if (modes.empty() && setup->evaluator->settings().time) modes = {"eager"};
  std::unique_ptr<search::BaselineClock> clock;
  if (!modes.empty()) {
    NEREID_TRY(
        clock,
        search::BaselineClock::make(
            *setup->evaluator, setup->installation,
            {.modes = modes, .seconds = kBaselineSampling, .patience = kBaselinePatience, .jobs = jobs}));
  }
  Progress progress("eval " + options.tasks, std::ssize(tasks));
  // Every result is in results.jsonl as soon as it is there, and a line that is cut short is dropped.
  end_soon_after_interrupt(kSecondsToEnd, "interrupted; run the same command to resume");
  Result<std::vector<eval::TaskResult>> results = Error{};
  {
    const Ticker ticker(progress, [&] { return setup->at_work(); });
    results =
        eval::evaluate(*setup->evaluator, tasks, setup->proposers,
                       {.folder = options.output,
                        .question = question,
                        .jobs = jobs,
                        .model_on_gpu = setup->model_on_gpu,
                        .budget = budget,
                        .search = {.samples = options.search.samples,
                                   .every_sample = true,  // pass@k counts them
                                   .first_is_enough = options.search.first,
                                   .speculate = options.search.speculate,
                                   .target_speedup = options.search.target_speedup,
                                   .repairs = options.search.once ? 0 : options.search.repairs,
                                   .fallbacks = !options.search.once,
                                   .subgraphs = !options.search.whole_only && !options.search.once,
                                   .tuning = !options.search.once},
                        .baselines = clock.get(),
                        .searched = [&](const search::Task& task,
                                        const search::Outcome& outcome) { setup->record(task, outcome); },
                        .report =
                            [&](const eval::TaskResult& r, int64_t done, int64_t of) {
                              progress.say(fmt::format("{} {}", r.id, verdict_name(r)));
                              progress.advance(1);
                              if (done % kNoted == 0 || done == of)
                                progress.note(fmt::format("{} of {} tasks, the last {}: {}", done, of, r.id,
                                                          verdict_name(r)));
                            }});
  }
  if (!results.ok()) return results.error();
  if (!setup->evaluator->trouble().empty())
    fmt::print(stderr, "nereid: not all was remembered: {}\n", setup->evaluator->trouble());
  std::vector<eval::Score> scores;
  for (const auto& r : *results) scores.push_back(r.score);
  const auto summary = eval::summarize(scores);
  const Json whole = report_json(options, *setup, question, summary, *results);
  const std::filesystem::path folder = options.output;
  const std::string text = whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  NEREID_TRY_STATUS(write_file_atomically(folder / "summary.json", text));
  NEREID_TRY_STATUS(write_file_atomically(folder / "page.html", eval::html_page(*results, summary,
                                                                                {.suite = options.tasks,
                                                                                 .hardware = setup->hardware,
                                                                                 .versions = setup->versions,
                                                                                 .question = question})));
  NEREID_TRY_STATUS(json ? write_stdout(json_line(whole)) : write_text(eval::text_table(*results, summary)));
  return whole["errors"] > 0 ? Answer::kNo : Answer::kYes;
}

}  // namespace

void add_eval_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("eval", "Optimize a folder of tasks: verified share, fast_p, pass@k");
  command->footer(kEvalExamples);
  auto options = std::make_shared<EvalOptions>();
  command->add_option("DIR", options->tasks, "Folder of tasks")->required();
  command->option_defaults()->group("Run");
  command->add_option("-o,--output", options->output, "Folder of results; created if missing")->required();
  command->add_option("--jobs", options->jobs, "Tasks in parallel (default: one per core)")
      ->check(CLI::Range(1, 1024));
  add_search_flags(*command, options->search);
  add_json_flag(*command, chosen, "Print the figures and every task's result as one JSON object");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
