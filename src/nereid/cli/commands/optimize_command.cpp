#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/output.h"
#include "nereid/cli/search_setup.h"
#include "nereid/cli/version.h"
#include "nereid/search/baselines.h"
#include "nereid/search/dynamic_batch.h"
#include "nereid/search/guarded.h"
#include "nereid/search/report/report.h"
#include "nereid/search/report/result_file.h"
#include "nereid/search/search.h"

namespace nereid::cli {
namespace {

constexpr const char* kOptimizeExamples = R"(Examples:
  nereid optimize model.py -o fast.py                   the fastest verified kernels
  nereid optimize model.py -o fast.py --policy strict   Triton alone, no PyTorch operator that computes
  nereid optimize model.py -o fast.py --against-compile --json | jq .against_compile
  nereid optimize model.py -o fast.py --proposers inductor --budget 20s
  nereid optimize model.py -o fast.py --dynamic batch --fallback    any batch size
  nereid optimize model.py -o fast.py --proposers compiler,model --samples 16    with a language model
  nereid optimize model.py -o fast.py --cuda-graph       a module that captures itself as a CUDA graph
  nereid optimize model.py -o fast.py --report fast.html    a page with graph, times, kernels and sources

model.py is a task: class Model, get_inputs(), get_init_inputs(). fast.py holds class ModelNew with the same
constructor and the same parameters. Its first lines say what was verified, on which inputs, and how fast it
is. A call that was not verified (another shape, dtype, stride, mode or argument, a gradient) raises
NotVerified; with --fallback it runs the original forward. Results are ranked by measured time on a GPU, and
by a cost model without one. Ctrl-C keeps the best verified result. Results are stored and reused (`nereid
store`).

Exit code 1: nothing was verified, or only kernels slower than eager PyTorch. Nothing is written, and the
evidence against the attempt that passed the most stages is printed.)";

constexpr double kBaselineSeconds = 1800;  // of all modes of PyTorch's together

struct OptimizeOptions {
  std::string reference, output, report;
  std::string dynamic;  // "batch"
  bool fallback = false, keep_slower = false, cuda_graph = false, static_outputs = false;
  ModuleFlags module;
  SearchFlags search;
};

compiler::Assumptions::Graph graph_of(const OptimizeOptions& options) {
  using Graph = compiler::Assumptions::Graph;
  if (!options.cuda_graph) return Graph::kNone;
  return options.static_outputs ? Graph::kStatic : Graph::kFresh;
}

// One line on stderr for each thing that happened.
void report(const search::Task& task, const search::Event& event, Progress& progress) {
  using Kind = search::Event::Kind;
  switch (event.kind) {
    case Kind::kRequested:
      return progress.say("asking " + event.proposer);
    case Kind::kDeclined:
      return progress.note(fmt::format("{}: no proposal: {}", event.proposer, event.text));
    case Kind::kJudged: {
      const auto& judged = *event.judged;
      return progress.note(fmt::format(
          "{}{}: {}{}", event.proposer, judged.variant.empty() ? "" : " (" + judged.variant + ")",
          to_string(judged.kind),
          judged.verified() ? "; " + search::speed_text(task, judged) : ": " + judged.reason.substr(0, 200)));
    }
    case Kind::kSaid:
      return progress.say(event.text);
    case Kind::kBest:
      return progress.say("best so far: " + event.proposer);
  }
}

Json result_json(const OptimizeOptions& options, const search::Task& task, const search::Outcome& outcome,
                 const search::Baselines& baselines, const SearchSetup& setup, bool written) {
  const auto* shown = outcome.best ? &*outcome.best : search::furthest(outcome);
  Json json = shown != nullptr ? search::to_json(*shown) : Json::object();
  if (shown == nullptr) json["verdict"] = Json();
  json["output"] = written ? Json(options.output) : Json();
  json["slower_than_eager"] = outcome.best ? Json(search::slower_than_eager(task, *outcome.best)) : Json();
  json["reference"] = options.reference;
  json["reference_modelled_ms"] = task.work.ms;
  if (shown != nullptr && shown->work) json["work"] = search::to_json(*shown->work);
  const auto* peaks = gpu::peaks_of(shown != nullptr && shown->times ? setup.hardware : "H200");
  json["roofline"] =
      outcome.best && shown->ms() && peaks != nullptr
          ? Json(search::roofline_ms(task.facts, *peaks, options.search.allow_tf32) / *shown->ms())
          : Json();
  if (!outcome.best && shown != nullptr) json["evidence"] = shown->evidence;
  json["tried"] = Json::array();
  for (const auto& judged : outcome.tried) json["tried"].push_back(search::to_json(judged));
  json["declined"] = Json::array();
  for (const auto& declined : outcome.declined)
    json["declined"].push_back({{"proposer", declined.proposer}, {"why", declined.why}});
  json["against_compile"] = outcome.compiled ? search::to_json(*outcome.compiled) : Json();
  json["baselines"] = search::to_json(baselines);
  json["cost"] = proposers::to_json(outcome.cost);
  json["seconds"] = outcome.seconds;
  json["all_tried"] = outcome.all_tried;
  json["first_seconds"] = outcome.best ? Json(outcome.first_seconds) : Json();
  json["best_seconds"] = outcome.best ? Json(outcome.best_seconds) : Json();
  json["timeline"] = search::to_json(outcome.spans, outcome.seconds);
  json["interrupted"] = interrupted();
  json["hardware"] = setup.hardware;
  json["versions"] = setup.versions;
  return json;
}

// The result for a person, on stdout.
std::string result_text(const OptimizeOptions& options, const search::Task& task,
                        const search::Outcome& outcome, const search::Baselines& baselines,
                        const std::string& hardware, bool written) {
  if (outcome.best) {
    const auto& best = *outcome.best;
    std::string text;
    if (search::slower_than_eager(task, best))
      text = fmt::format("The best verified kernels are slower than eager PyTorch{}.\n",
                         written ? "" : "; nothing is written (--keep-slower writes them)");
    text += fmt::format("{}: {}{}, {}: {}.\n", written ? options.output : options.reference, best.proposer,
                        best.variant.empty() ? "" : " (" + best.variant + ")", to_string(best.kind),
                        search::speed_text(task, best));
    if (outcome.compiled && outcome.compiled->ms() && best.ms())
      text += fmt::format("  torch.compile's kernels take {} ({}), {:.2f} times as long.\n",
                          search::milliseconds_text(*outcome.compiled->ms()),
                          outcome.compiled->times ? "measured" : "modelled",
                          *outcome.compiled->ms() / *best.ms());
    return text + search::baselines_text(baselines, hardware);
  }
  std::string text = fmt::format("Nothing was verified for {}; nothing is written.\n", options.reference);
  if (outcome.all_tried && !outcome.tried.empty())
    text += fmt::format("  All that there was to try was tried, in {:.0f} s of {}.\n", outcome.seconds,
                        options.search.budget_text());
  else if (!outcome.all_tried && !options.search.once)
    text += fmt::format("  There was more to try when --budget {} was over.\n", options.search.budget_text());
  for (const auto& declined : outcome.declined)
    text += fmt::format("  {} has no proposal: {}\n", declined.proposer, declined.why);
  if (const auto* closest = search::furthest(outcome))
    text += fmt::format("The closest, by {}:\n{}", closest->proposer, closest->evidence);
  // Rules of verify/rules/rules.cpp that a wider policy lifts.
  const bool operators = std::ranges::any_of(outcome.tried, [](const search::Judged& judged) {
    return judged.kind == verify::VerdictKind::kDisallowed &&
           (judged.verdict.find("\"aten-compute\"") != std::string::npos ||
            judged.verdict.find("\"aten-share\"") != std::string::npos);
  });
  if (operators && options.search.policy != "hybrid")
    text += "Operators without a kernel stay PyTorch's: --policy hybrid allows them.\n";
  return text;
}

void keep_run(const SearchSetup& setup, const search::Task& task, const Json& result) {
  if (!setup.store) return;
  Json document = result;
  document.erase("work");
  document.erase("timeline");
  (void)setup.store->put(
      {.key = {.kind = store::Kind::kRun,
               .task = task.hash,
               .subject = "optimize",
               .question = fmt::format("{:x}", fresh_seed()),
               .hardware = setup.hardware,
               .versions = setup.versions},
       .state = result["verdict"].is_string() ? result["verdict"].get<std::string>() : "none",
       .document = document.dump(-1, ' ', false, Json::error_handler_t::replace)});
}

// The compiler's kernels for any batch, judged at three.
Result<Answer> run_dynamic(const OptimizeOptions& options, const search::Task& task, const SearchSetup& setup,
                           Deadline end, Progress& progress, bool json) {
  NEREID_TRY(const compiler::Guard guard, compiler::Guard::read(setup.installation.package));
  progress.say("writing kernels for any batch");
  NEREID_TRY(auto made, search::for_any_batch(*setup.evaluator, task, guard, options.fallback, end));
  if (interrupted()) return Error{"interrupted before anything was verified", Blame::kInterrupted};
  const search::Judged& own = made.judged.front().judged;
  const bool slower = search::slower_than_eager(task, own),
             written = made.verified() && (options.keep_slower || !slower);
  if (written) {
    search::Judged best = own;
    best.source = made.source, best.variant = "for any batch";
    made.assumptions += "Verified at batches of ";
    for (size_t i = 0; i < made.judged.size(); ++i)
      made.assumptions += fmt::format("{}{}",
                                      i == 0                        ? ""
                                      : i + 1 == made.judged.size() ? " and "
                                                                    : ", ",
                                      made.judged[i].batch);
    made.assumptions += ".\n";
    const search::Provenance provenance{.program = "nereid " NEREID_VERSION,
                                        .reference = task.name,
                                        .hardware = setup.hardware,
                                        .versions = setup.versions,
                                        .assumptions = made.assumptions};
    NEREID_TRY_STATUS(write_file_atomically(options.output, search::result_file(task, best, provenance)));
  }
  Json result = search::to_json(made.judged.back().judged);
  result["output"] = written ? Json(options.output) : Json();
  result["reference"] = options.reference;
  result["slower_than_eager"] = slower;
  result["least_batch"] = made.least, result["largest_batch"] = made.largest;
  std::string batches;
  for (const auto& at : made.judged) {
    result["batches"].push_back(
        {{"batch", at.batch}, {"verdict", to_string(at.judged.kind)}, {"reason", at.judged.reason}});
    batches +=
        fmt::format("  at a batch of {}: {}{}\n", at.batch, to_string(at.judged.kind),
                    !at.judged.verified()                   ? ": " + at.judged.reason
                    : at.batch == made.judged.front().batch ? "; " + search::speed_text(task, at.judged)
                                                            : "");
  }
  std::string text = fmt::format("{}: compiler, for any batch from {} to {}.\n{}", options.output, made.least,
                                 made.largest, batches);
  if (!written)
    text =
        fmt::format("{}; nothing is written.\n{}",
                    made.verified() ? "The kernels are slower than eager PyTorch (--keep-slower writes them)"
                                    : "Kernels for any batch were not verified",
                    batches);
  NEREID_TRY_STATUS(write_stdout(json ? json_line(result) : text));
  if (written) return Answer::kYes;
  return made.judged.back().judged.kind == verify::VerdictKind::kError ? Answer::kOurError : Answer::kNo;
}

// What can be wrong with the files that options name, before anything is computed.
Status check_files(const OptimizeOptions& options) {
  NEREID_TRY_STATUS(can_be_written("-o", options.output));
  NEREID_TRY_STATUS(is_not("-o", options.output, options.reference));
  if (options.report.empty()) return ok_status();
  NEREID_TRY_STATUS(can_be_written("--report", options.report));
  NEREID_TRY_STATUS(is_not("--report", options.report, options.reference));
  if (std::filesystem::absolute(options.report).lexically_normal() ==
      std::filesystem::absolute(options.output).lexically_normal())
    return input_error("--report {}: expected another file than -o", options.report);
  return ok_status();
}

// `spent`: seconds since the command began; `reference_seconds`: of these, for the reference's trace.
search::SearchOptions search_options(const OptimizeOptions& options, Deadline end, double reference_seconds) {
  // What follows the search, from what it has taken so far: traces of the reference and, three times, of the
  // result (search/guarded.h); of a module that captures itself one more and a verdict.
  const auto to_finish = [reference_seconds, captures = options.cuda_graph](const search::Judged& best) {
    const double traced = best.traced_seconds > 0 ? best.traced_seconds : reference_seconds;
    const double judged = best.seconds > 0 ? best.seconds : traced;
    return reference_seconds + 3 * traced + (captures ? traced + judged : 0);
  };
  return {.deadline = end,
          .samples = options.search.samples,
          .every_sample = options.search.every_sample,
          .first_is_enough = options.search.first,
          .speculate = options.search.speculate,
          .target_speedup = options.search.target_speedup,
          .repairs = options.search.once ? 0 : options.search.repairs,
          .fallbacks = !options.search.once,
          .subgraphs = !options.search.whole_only && !options.search.once,
          .tuning = !options.search.once,
          .to_finish = to_finish};
}

// Times PyTorch in the asked modes; torch.compile's kernels go to the outcome.
Result<search::Baselines> time_baselines(const SearchSetup& setup, const search::Task& task,
                                         const std::vector<std::string>& modes, search::Outcome& outcome,
                                         Progress& progress) {
  progress.say("timing PyTorch");
  const auto clock = search::BaselineClock::make(*setup.evaluator, setup.installation, {.modes = modes});
  if (!clock.ok()) {
    if (clock.error().blame == Blame::kInterrupted) return search::Baselines();  // the best is kept
    return clock.error();
  }
  auto compared = (*clock)->measure(task, outcome.best->source, Deadline::after(kBaselineSeconds),
                                    outcome.best->proposer == "compiler");
  if (compared.ok()) {
    outcome.compiled = std::move(compared->kernels);
    return std::move(compared->baselines);
  }
  if (!interrupted())  // the best is kept all the same
    progress.note("nereid: PyTorch was not timed: " + compared.error().message);
  return search::Baselines();
}

// Writes the best to -o, with its guard.
Status write_best(const OptimizeOptions& options, const SearchSetup& setup, const search::Task& task,
                  const search::Baselines& baselines, search::Outcome& outcome, Deadline finish,
                  Progress& progress) {
  NEREID_TRY(const compiler::Guard guard, compiler::Guard::read(setup.installation.package));
  NEREID_TRY(auto file, search::guarded(*setup.evaluator, task, outcome.best->source, guard,
                                        {.fallback = options.fallback,
                                         .direct = outcome.best->proposer == "compiler",
                                         .graph = graph_of(options),
                                         .deadline = finish}));
  outcome.best->source = std::move(file.source);
  if (options.fallback && !file.traced)
    progress.note(fmt::format("nereid: {}: the file is written without --fallback",
                              interrupted() ? "interrupted" : "the budget ended"));
  const search::Provenance provenance{.program = "nereid " NEREID_VERSION,
                                      .reference = task.name,
                                      .hardware = setup.hardware,
                                      .versions = setup.versions,
                                      .compiled = outcome.compiled ? &*outcome.compiled : nullptr,
                                      .baselines = baselines,
                                      .assumptions = std::move(file.assumptions)};
  return write_file_atomically(options.output, search::result_file(task, *outcome.best, provenance));
}

Result<Answer> run(const OptimizeOptions& options, bool json) {
  const Stopwatch watch;
  NEREID_TRY(const double budget, seconds_from(options.search.budget_text(), "--budget"));
  if (std::filesystem::is_directory(options.reference))
    return input_error(
        "{}: is a folder, expected a file; `nereid eval {} -o RESULTS` does all of a folder's tasks",
        options.reference, options.reference);
  NEREID_TRY(const std::string source, read_module(options.reference, options.module));
  NEREID_TRY_STATUS(check_files(options));
  NEREID_TRY(const auto setup, SearchSetup::make(options.search, 1));
  NEREID_TRY(const auto modes, baselines_of(options.search, setup->evaluator->settings().device));
  const std::string name = std::filesystem::path(options.reference).filename().string();
  Progress progress("optimize " + name);
  const Ticker ticker(progress, [&] { return setup->at_work(); });
  const double begun = watch.seconds();
  const Deadline end = Deadline::after(budget - begun);
  auto traced = setup->evaluator->trace(name, source, end);
  if (!traced.ok() && end.passed() && !interrupted())
    return input_error("--budget {}: tracing {} took longer than that, expected a longer budget",
                       options.search.budget_text(), name);
  if (!traced.ok()) return traced.error();
  const auto& task = *traced;
  if (!options.dynamic.empty()) return run_dynamic(options, *task, *setup, end, progress, json);
  auto outcome = search::search(*setup->evaluator, *task, setup->proposers,
                                search_options(options, end, watch.seconds() - begun),
                                [&](const search::Event& event) { report(*task, event, progress); });
  setup->record(*task, outcome);
  if (!setup->evaluator->trouble().empty())
    progress.note("nereid: not all was remembered: " + setup->evaluator->trouble());
  if (!outcome.best && interrupted())
    return Error{"interrupted before anything was verified", Blame::kInterrupted};
  if (const auto* fault = search::fault_of(outcome); fault != nullptr && !outcome.best)
    return Error{fmt::format("nothing was verified, and {} failed: {}", fault->proposer, fault->why),
                 *fault->fault};
  // The rest of the budget, and a tenth of it beyond; baselines are timed on top of it.
  const double left = std::max(0.0, 1.1 * budget - watch.seconds());
  search::Baselines baselines;
  if (outcome.best && !modes.empty() && !interrupted()) {
    NEREID_TRY(baselines, time_baselines(*setup, *task, modes, outcome, progress));
  }
  const bool written =
      outcome.best && (options.keep_slower || !search::slower_than_eager(*task, *outcome.best));
  if (written)
    NEREID_TRY_STATUS(
        write_best(options, *setup, *task, baselines, outcome, Deadline::after(left), progress));
  if (!options.report.empty())
    NEREID_TRY_STATUS(
        write_file_atomically(options.report, search::report_page(*task, outcome,
                                                                  {.reference = name,
                                                                   .hardware = setup->hardware,
                                                                   .versions = setup->versions,
                                                                   .policy = options.search.policy,
                                                                   .baselines = baselines})));
  const Json result = result_json(options, *task, outcome, baselines, *setup, written);
  keep_run(*setup, *task, result);
  NEREID_TRY_STATUS(
      json ? write_stdout(json_line(result))
           : write_text(result_text(options, *task, outcome, baselines, setup->hardware, written)));
  if (outcome.best) return written ? Answer::kYes : Answer::kNo;
  const auto* closest = search::furthest(outcome);
  return closest != nullptr && closest->kind == verify::VerdictKind::kError ? Answer::kOurError : Answer::kNo;
}

}  // namespace

void add_optimize_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("optimize", "Find the fastest verified Triton kernels for a module");
  command->footer(kOptimizeExamples);
  auto options = std::make_shared<OptimizeOptions>();
  command
      ->add_option("REFERENCE", options->reference, "Task file: class Model, get_inputs(), get_init_inputs()")
      ->required();

  command->option_defaults()->group("Written file");
  command->add_option("-o,--output", options->output, "File for ModelNew")->required();
  command->add_option("--report", options->report,
                      "Write a report page (HTML): graph, kernels, times, sources");
  command
      ->add_option("--dynamic", options->dynamic,
                   "batch: kernels for any batch size (first dimension of forward's first tensor), verified "
                   "at three sizes")
      ->check(CLI::IsMember({"batch"}));
  command->add_flag(
      "--fallback", options->fallback,
      "Include the original forward, and run it for unverified calls: other shapes, a CPU, gradients");
  auto* graph = command->add_flag("--cuda-graph", options->cuda_graph,
                                  "Write a module that captures itself as a CUDA graph, verified as such");
  command
      ->add_flag("--static-outputs", options->static_outputs,
                 "With --cuda-graph: return the graph's own buffers, which the next call overwrites")
      ->needs(graph);
  graph->excludes("--dynamic");
  command->add_flag("--keep-slower", options->keep_slower,
                    "Write the best verified kernels even if eager PyTorch is faster");

  command->option_defaults()->group("Task");
  add_module_flags(*command, options->module);
  add_search_flags(*command, options->search);
  add_json_flag(
      *command, chosen,
      "Print the result as one JSON object: verdict, times, roofline, proposer, plan, tried[], ...");
  command->callback([options, &chosen] {
    // What is written stands in for the module: a caller may keep its outputs.
    if (!options->static_outputs) options->search.forbid.emplace_back("reused-output");
    chosen.run = [options, &chosen] { return run(*options, chosen.json); };
  });
}

}  // namespace nereid::cli
