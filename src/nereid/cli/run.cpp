#include "nereid/cli/run.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nereid/base/printable.h"
#include "nereid/base/program/help.h"
#include "nereid/cli/command.h"
#include "nereid/cli/version.h"

namespace nereid::cli {
namespace {

constexpr const char* kFooter =
    R"(Exit codes: 0 success, 1 negative result (not verified, not lowered), 2 bad usage or input, 3 internal
error, 130 interrupted.
Data goes to stdout, all else to stderr. `nereid COMMAND --help` explains a command, with examples.
NEREID_KEEP_WARM=SECONDS in the environment keeps the tracer's process running for later commands, which
start faster.)";

// Where commands stand in `nereid --help`.
const std::vector<std::pair<const char*, std::vector<const char*>>> kHeadings = {
    {"Kernels", {"optimize", "verify", "lower", "trace", "eval", "mutate"}},
    {"Tasks", {"synth", "ops", "harvest", "choices", "import", "package"}},
    {"Language models",
     {"train", "runs", "generate", "serve-model", "tokenize", "import-gguf", "export", "skills"}},
    {"Services", {"serve", "store", "doctor"}}};

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Nereid turns PyTorch modules into verified Triton kernels.", "nereid"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "nereid " NEREID_VERSION);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());

  Chosen chosen;
  add_optimize_command(app, chosen);
  add_verify_command(app, chosen);
  add_lower_command(app, chosen);
  add_trace_command(app, chosen);
  add_eval_command(app, chosen);
  add_mutate_command(app, chosen);
  add_synth_command(app, chosen);
  add_ops_command(app, chosen);
  add_harvest_command(app, chosen);
  add_choices_command(app, chosen);
  add_formats_commands(app, chosen);
  add_train_command(app, chosen);
  add_runs_command(app, chosen);
  add_language_model_commands(app, chosen);
  add_tokenize_command(app, chosen);
  add_import_gguf_command(app, chosen);
  add_serve_command(app, chosen);
  add_skills_command(app, chosen);
  add_store_command(app, chosen);
  add_doctor_command(app, chosen);
  for (const auto& [heading, names] : kHeadings)
    for (const char* name : names) app.get_subcommand(name)->group(heading);

  // CLI11 says "A subcommand is required" of a word that is none.
  const auto commands = app.get_subcommands({});
  const auto is_meant = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, is_meant)) {
    std::string names;
    for (const auto* command : commands)
      if (!command->get_group().empty()) names += (names.empty() ? "" : ", ") + command->get_name();
    fmt::print(stderr, "nereid: there is no command '{}': expected one of {}\n", printable(argv[1]), names);
    return exit_code(Blame::kInput);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return exit_code_of(app, e);
  }
  return run_to_exit_code(chosen);
}

}  // namespace nereid::cli
