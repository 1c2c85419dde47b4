#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/number_option.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/output.h"
#include "nereid/cli/synth_options.h"
#include "nereid/mutate/report.h"
#include "nereid/mutate/sources.h"
#include "nereid/tracer/tracer.h"

namespace nereid::cli {
namespace {

constexpr const char* kMutateExamples =
    R"(A mutant is a verified candidate with one fault: another operator, a dropped mask, a narrower
accumulator. Each is judged, and a wide search looks for a witness: an input on which it is wrong. For each
class of faults the table says how many mutants with a witness the verdict kills, and how many KernelBench's
published check kills. docs/mutation.md explains the method.

CANDIDATES are files whose docstring names their reference (`reference: PATH`), folders of such files, and
folders of --save, which need no Python.

Examples:
  nereid mutate tests/honest -o results --page mutation.html
  nereid mutate mine.py --reference task.py -o results
  nereid mutate --synth 1,2,5 --count 100 --variants 4 -o results    programs that the compiler lowers
  nereid mutate tests/honest -o results                              resumes
  nereid mutate tests/honest --save subjects --limit 1 -o results    traces for a machine without Triton
  nereid mutate subjects -o results --seconds 500)";

struct MutateOptions {
  std::vector<std::string> candidates, faults, only;
  ModuleFlags module;
  std::string reference, output, page, save, seconds;
  std::vector<int> lengths;
  int count = 50, variants = 1, jobs = 0, each = 60, rewrites = 4;
  int64_t limit = 0;
  uint64_t seed = 0;
  double slowest = 2, time_limit = 10;
};

bool is_saved(const std::string& path) {
  return std::filesystem::exists(std::filesystem::path(path) / mutate::kSubjectsFile);
}

bool needs_tracer(const MutateOptions& o) {
  return !o.lengths.empty() ||
         std::ranges::any_of(o.candidates, [](const auto& path) { return !is_saved(path); });
}

Result<std::vector<mutate::Source>> sources_of(const MutateOptions& o, tracer::Tracer* tracer) {
  std::vector<mutate::Source> all;
  const auto add = [&](std::vector<mutate::Source> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  const mutate::PairReader reader{
      .reference = [flags = o.module](const auto& file) { return read_module(file, flags); },
      .candidate = [flags = o.module](const auto& file) { return read_candidate(file, flags); }};
  for (const auto& path : o.candidates) {
    if (is_saved(path)) {
      NEREID_TRY(auto saved, mutate::sources_of_saved(path));
      add(std::move(saved));
    } else if (std::filesystem::is_directory(path)) {
      NEREID_TRY(auto folder, mutate::sources_of_folder(*tracer, path, reader, o.seed));
      add(std::move(folder));
    } else {
      NEREID_TRY(auto file, mutate::source_of_file(*tracer, path, o.reference, reader, o.seed));
      all.push_back(std::move(file));
    }
  }
  if (o.lengths.empty()) return all;
  SynthOptions synth;
  synth.pairs = true;
  NEREID_TRY(auto space, space_of(synth));
  const auto shared = std::make_shared<const synth::Space>(std::move(space));
  for (const int length : o.lengths)
    add(mutate::sources_of_programs(*tracer, shared, length, o.count, o.variants, o.seed));
  return all;
}

Status keep_only(const std::vector<std::string>& ids, std::vector<mutate::Source>& sources) {
  if (ids.empty()) return ok_status();
  for (const auto& id : ids)
    if (std::ranges::find(sources, id, &mutate::Source::id) == sources.end())
      return input_error("--only: no candidate is named '{}'; expected names such as '{}'", id,
                         sources.empty() ? "folder/file" : sources.front().id);
  std::erase_if(sources, [&](const auto& source) { return std::ranges::find(ids, source.id) == ids.end(); });
  return ok_status();
}

Result<mutate::CampaignOptions> campaign_options(const MutateOptions& o) {
  mutate::CampaignOptions options{.folder = o.output,
                                  .seed = o.seed,
                                  .mutants_each = o.each,
                                  .rewrites_each = o.rewrites,
                                  .limit = o.limit,
                                  .slowest = o.slowest,
                                  .time_limit = o.time_limit};
  options.jobs = o.jobs > 0 ? o.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!o.seconds.empty()) {
    NEREID_TRY(const double seconds, seconds_from(o.seconds, "--seconds"));
    options.until = Deadline::after(seconds, LimitOwner::kCaller);
  }
  for (const auto& name : o.faults) {
    const auto fault = mutate::fault_from_string(name);
    if (!fault) return input_error("--fault: there is no class '{}'; docs/mutation.md lists them", name);
    options.faults.push_back(*fault);
  }
  return options;
}

Result<Answer> run(const MutateOptions& o, bool json) {
  NEREID_TRY(const auto options, campaign_options(o));
  if (!o.reference.empty()) {
    NEREID_TRY([[maybe_unused]] const auto readable, read_module(o.reference, o.module));
  }
  std::unique_ptr<tracer::Tracer> tracer;
  if (needs_tracer(o)) {
    NEREID_TRY(const Installation installation, Installation::locate());
    NEREID_TRY(tracer,
               tracer::Tracer::start({.installation = installation, .workers = options.jobs, .limits = {}}));
  }
  NEREID_TRY(auto sources, sources_of(o, tracer.get()));
  NEREID_TRY_STATUS(keep_only(o.only, sources));
  NEREID_TRY(const auto end, mutate::run_campaign(sources, options, !o.save.empty()));
  if (!o.save.empty()) NEREID_TRY_STATUS(mutate::save_subjects(end.subjects, o.save));
  const auto report = mutate::report_of(end.results);
  Json document = to_json(report);
  document["left"] = end.left, document["sources_left"] = end.sources_left, document["slow"] = end.slow,
  document["not_loaded"] = end.not_loaded;
  NEREID_TRY_STATUS(write_file_atomically(options.folder / "report.json", json_line(document)));
  if (!o.page.empty()) NEREID_TRY_STATUS(write_file_atomically(o.page, mutate::html_page(report, end)));
  for (const auto& why : end.not_loaded) fmt::print(stderr, "left out: {}\n", why.substr(0, 300));
  if (end.slow > 0)
    fmt::print(stderr, "{} candidates not mutated: their own verdict takes too long\n", end.slow);
  if (end.sources_left > 0)
    fmt::print(stderr, "{} candidates are not loaded; run the same command to resume\n", end.sources_left);
  if (end.left > 0)
    fmt::print(stderr, "{} mutants are not judged; run the same command to resume\n", end.left);
  NEREID_TRY_STATUS(write_stdout(json ? json_line(document) : mutate::text_table(report)));
  if (end.interrupted) return Error{"interrupted", Blame::kInterrupted};
  if (!sources.empty() && end.not_loaded.size() == sources.size()) return Answer::kBadInput;
  return report.survivors.empty() && report.refused.empty() ? Answer::kYes : Answer::kNo;
}

}  // namespace

void add_mutate_command(CLI::App& app, Chosen& chosen) {
  auto o = std::make_shared<MutateOptions>();
  CLI::App* command = app.add_subcommand("mutate", "Measure the verdict with deliberate faults");
  command->footer(kMutateExamples);

  command->option_defaults()->group("Candidates");
  command->add_option("CANDIDATES", o->candidates, "Files, folders of files, folders that --save wrote");
  command->add_option("--reference", o->reference, "Reference of candidates whose docstring names none");
  add_include_flag(*command, o->module);
  command
      ->add_option("--synth", o->lengths,
                   "Sampled programs of these numbers of operators, lowered by the compiler: 1,2,5")
      ->delimiter(',')
      ->check(CLI::Range(1, 40));
  command->add_option("--count", o->count, "With --synth: programs of each number of operators")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--variants", o->variants,
                   "With --synth: ways to lower each program; all must be Verified")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--only", o->only, "Only these candidates, as honest/gelu_erf or, of --synth, L5-17")
      ->delimiter(',');
  command->add_option("--slowest", o->slowest, "Skip candidates whose own verdict takes longer, in seconds")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();

  command->option_defaults()->group("Mutants");
  command->add_option("--each", o->each, "Maximum mutants of each candidate")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  command->add_option("--rewrites", o->rewrites, "Maximum rewrites of each candidate that keep its results")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--fault", o->faults, "Only mutants of these classes")->delimiter(',');
  command->add_option("--seed", o->seed, "Seed of mutants, programs and trials")
      ->check(a_seed())
      ->capture_default_str();

  command->option_defaults()->group("Run");
  command
      ->add_option("-o,--output", o->output,
                   "Folder of results.jsonl and report.json; the same command resumes")
      ->required();
  command->add_option("--page", o->page, "Report page (HTML): table, survivors with their difference");
  command->add_option("--save", o->save, "Folder for the traces of all candidates that are Verified");
  command->add_option("--limit", o->limit, "Mutants to judge in this run (default: all)")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", o->seconds,
                      "Time budget, as 500 or 9m: the rest is left to the next run (default: none)");
  command->add_option("--time-limit", o->time_limit, "Time limit for each phase of a replay, in seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_option("--jobs", o->jobs, "Mutants judged in parallel (default: one per core)")
      ->check(CLI::Range(1, 1024));

  command->option_defaults()->group("Options");
  add_json_flag(*command, chosen, "Print the report as one JSON object");
  command->callback([o, &chosen] {
    if (o->candidates.empty() && o->lengths.empty())
      throw CLI::ValidationError("mutate", "expected CANDIDATES, or --synth");
    chosen.run = [o, &chosen] { return run(*o, chosen.json); };
  });
}

}  // namespace nereid::cli
