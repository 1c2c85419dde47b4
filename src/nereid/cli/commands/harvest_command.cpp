#include <CLI/CLI.hpp>
#include <memory>

#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/dataset/harvest.h"

namespace nereid::cli {
namespace {

constexpr const char* kHarvestHelp = R"(Examples:
  python -m venv V && V/bin/pip install -r runs/harvest.txt    an environment of its own
  nereid harvest --list runs/harvest.txt --python V/bin/python -o harvest
  nereid harvest --packages timm,torchvision==0.26.0 -o few --limit 500 --max-operators 5
  nereid harvest --list runs/harvest.txt --hold-out kornia --python V/bin/python -o harvest --budget 20m
  jq -r .code harvest/train.jsonl | head -40    the tasks' source; `nereid train rl` reads the file

The folder holds train.jsonl and held_out.jsonl (one task per line: `code`, package, version, licence, class,
operators, difficulty, sizes, digest), split.json and coverage.json. The same command resumes. Whole packages
are held out, with other packages of their authors. Packages run in a sandbox that has no network and no
writable files. docs/data.md says what is collected. The tasks keep the licences of their packages.)";

struct HarvestFlags {
  std::vector<std::string> packages, hold_out;
  std::string list, output, python, budget;
  uint64_t limit = 0, seed = 0;
  int max_operators = 12, per_module = 60, same_structure = 8;
  double time_limit = 30;
};

Result<dataset::HarvestOptions> options_of(const HarvestFlags& flags) {
  dataset::HarvestOptions options{.output = flags.output,
                                  .python = flags.python,
                                  .hold_out = flags.hold_out,
                                  .limit = flags.limit,
                                  .max_operators = flags.max_operators,
                                  .per_entry = flags.per_module,
                                  .same_structure = flags.same_structure,
                                  .seed = flags.seed,
                                  .entry_seconds = flags.time_limit};
  if (!flags.budget.empty()) {
    NEREID_TRY(options.seconds, seconds_from(flags.budget, "--budget"));
  }
  if (!flags.list.empty()) {
    NEREID_TRY(options.packages, dataset::read_package_list(flags.list));
  }
  std::vector<dataset::HarvestPackage> named;
  for (const auto& text : flags.packages) {
    NEREID_TRY(dataset::HarvestPackage package, dataset::package_named(text));
    for (const auto& listed : options.packages)  // its pin and its side
      if (listed.name == package.name) {
        package.held_out = listed.held_out;
        if (package.version.empty()) package.version = listed.version;
      }
    named.push_back(std::move(package));
  }
  if (!named.empty()) {
    for (auto& listed : options.packages)
      if (listed.held_out &&
          std::ranges::none_of(named, [&](const auto& package) { return package.name == listed.name; }))
        options.held_out_elsewhere.push_back(std::move(listed));
    options.packages = std::move(named);
  }
  if (options.packages.empty())
    return input_error("no package is named: give --packages NAME,... or --list FILE (runs/harvest.txt)");
  for (const auto& name : flags.hold_out)
    if (std::ranges::none_of(options.packages, [&](const auto& package) { return package.name == name; }))
      return input_error("--hold-out {}: it is not among the packages", name);
  return options;
}

void append_counts(std::string& text, const Json& counts, const char* kind, size_t most) {
  if (!counts.contains(kind)) return;
  std::vector<std::pair<uint64_t, std::string>> ordered;
  for (const auto& [name, count] : counts.at(kind).items()) ordered.emplace_back(count.get<uint64_t>(), name);
  std::ranges::sort(ordered, std::greater());
  text += fmt::format("\n{}:", kind);
  for (size_t i = 0; i < ordered.size() && i < most; ++i)
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", ordered[i].second, ordered[i].first);
  if (ordered.size() > most) text += fmt::format(", and {} more", ordered.size() - most);
}

std::string report_text(const Json& report) {
  std::string text = fmt::format("{:<30} {:<10} {:<9} {:>14} {:>7} {:>7} {:>9}\n", "package", "version",
                                 "split", "looked at", "failed", "tasks", "a minute");
  for (const auto& package : report.at("packages"))
    text += fmt::format(
        "{:<30} {:<10} {:<9} {:>14} {:>7} {:>7} {:>9.1f}\n", package.at("package").get<std::string>(),
        package.at("version").get<std::string>(), package.at("split").get<std::string>(),
        fmt::format("{} of {}", package.at("next").get<uint64_t>(), package.at("entries").get<uint64_t>()),
        package.at("failed").get<uint64_t>(), package.at("tasks").get<uint64_t>(),
        package.at("tasks_per_minute").get<double>());
  text += fmt::format("{} tasks with {} structures in {:.0f} s", report.at("tasks").get<uint64_t>(),
                      report.at("structures").get<uint64_t>(), report.at("seconds").get<double>());
  const Json& counts = report.at("counts");
  for (const char* kind : {"form", "difficulty", "licence", "operator_class"})
    append_counts(text, counts, kind, 12);
  append_counts(text, counts, "operator", 20);
  return text + "\n";
}

Result<Answer> run(const HarvestFlags& flags, bool json) {
  NEREID_TRY(const dataset::HarvestOptions options, options_of(flags));
  NEREID_TRY(const Installation installation, Installation::locate());
  if (!options.python.empty() && !std::filesystem::exists(options.python))
    return input_error("--python {}: no such file", options.python.string());
  NEREID_TRY(const Json report, dataset::harvest(options, installation));
  NEREID_TRY_STATUS(json ? write_stdout(json_line(report)) : write_text(report_text(report)));
  if (report.at("interrupted").get<bool>()) {
    fmt::print(stderr, "nereid: interrupted; the same command continues\n");
    return Error{"interrupted", Blame::kInterrupted};
  }
  return Answer::kYes;
}

}  // namespace

void add_harvest_command(CLI::App& app, Chosen& chosen) {
  auto flags = std::make_shared<HarvestFlags>();
  CLI::App* command = app.add_subcommand("harvest", "Collect tasks from the modules of installed packages");
  command->footer(kHarvestHelp);

  command->option_defaults()->group("Packages");
  command
      ->add_option("--packages", flags->packages,
                   "Packages of PyPI, separated by commas: NAME or NAME==VERSION (default: all of --list)")
      ->delimiter(',');
  command->add_option("--list", flags->list, "File of pinned packages: NAME==VERSION, one a line")
      ->check(CLI::ExistingFile);
  command->add_option("--python", flags->python,
                      "Python interpreter with the packages and torch (default: the one that nereid uses)");
  command
      ->add_option("--hold-out", flags->hold_out,
                   "Packages held out of training, separated by commas, with others of their authors")
      ->delimiter(',');

  command->option_defaults()->group("Tasks");
  command->add_option("--limit", flags->limit, "Maximum tasks of each package (default: no limit)");
  command->add_option("--max-operators", flags->max_operators, "Maximum operators of a task (default: 12)")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--per-module", flags->per_module,
                   "Maximum subgraphs of one module or model (default: 60)")
      ->check(CLI::Range(0, 2000));
  command
      ->add_option("--same-structure", flags->same_structure,
                   "Maximum tasks that differ in numbers alone: sizes, strides, constants (default: 8)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seed", flags->seed, "Seed of the order and of the subgraphs (default: 0)");

  command->option_defaults()->group("Run");
  command->add_option("-o,--output", flags->output, "Folder of tasks; the same command resumes")->required();
  command->add_option("--budget", flags->budget,
                      "Time budget, as 20m: no module starts after it (default: no limit)");
  command
      ->add_option("--time-limit", flags->time_limit,
                   "Time limit for one module or model, in seconds of work (default: 30)")
      ->check(CLI::Range(0.1, 3600.0));

  command->option_defaults()->group("Options");
  add_json_flag(*command, chosen, "Print one JSON object: packages, counts, dropped, seconds, interrupted");
  command->callback([flags, &chosen] { chosen.run = [flags, &chosen] { return run(*flags, chosen.json); }; });
}

}  // namespace nereid::cli
