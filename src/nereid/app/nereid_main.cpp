// The `nereid` command: a frame around its subcommands. Each registers itself (command.h); what is common to
// all is here: help, version, interrupts, how an error is told and which exit code follows.
#include <CLI/CLI.hpp>
#include <exception>

#include "nereid/app/command.h"
#include "nereid/app/output.h"
#include "nereid/app/version.h"
#include "nereid/base/interrupt.h"
#include "nereid/base/json.h"

namespace {

using nereid::Blame;
using nereid::Error;

constexpr const char* kFooter =
    R"(Exit codes: 0 yes or done, 1 the answer is no, 2 bad usage or input, 3 an error of our own, 130 interrupted.
Data goes to stdout, all else to stderr. `nereid COMMAND --help` explains a command, with examples.
NEREID_KEEP_WARM=SECONDS in the environment leaves the warm tracer to the next command, which then starts at once.)";

int tell(const Error& error, bool json) {
  fmt::print(stderr, "nereid: {}\n", error.message);
  if (json) {
    const char* blame = error.blame == Blame::kInput  ? "input"
                        : error.blame == Blame::kOurs ? "ours"
                                                      : "interrupted";
    const nereid::Json document = {{"error", {{"message", error.message}, {"blame", blame}}}};
    (void)nereid::app::write_stdout(document.dump(-1, ' ', false, nereid::Json::error_handler_t::replace) +
                                    "\n");
  }
  return nereid::app::exit_code(error.blame);
}

int run(int argc, char** argv) {
  CLI::App app{"Nereid turns PyTorch modules into verified Triton kernels.", "nereid"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "nereid " NEREID_VERSION);
  app.footer(kFooter);
  app.get_formatter()->column_width(34);

  nereid::app::Chosen chosen;
  nereid::app::add_trace_command(app, chosen);
  nereid::app::add_verify_command(app, chosen);
  nereid::app::add_lower_command(app, chosen);
  nereid::app::add_ops_command(app, chosen);
  nereid::app::add_synth_command(app, chosen);
  nereid::app::add_optimize_command(app, chosen);
  nereid::app::add_eval_command(app, chosen);
  nereid::app::add_language_model_commands(app, chosen);
  nereid::app::add_runs_command(app, chosen);
  nereid::app::add_store_command(app, chosen);
  nereid::app::add_train_command(app, chosen);
  nereid::app::add_tokenize_command(app, chosen);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0
                            : nereid::app::exit_code(Blame::kInput);  // --help and --version are no errors
  }
  nereid::watch_for_interrupts();
  auto answer = chosen.run();
  if (answer.ok()) return static_cast<int>(*answer);
  if (nereid::interrupted()) return tell(Error{"interrupted", Blame::kInterrupted}, chosen.json);
  return tell(answer.error(), chosen.json);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    return tell(Error{fmt::format("unexpected: {}", e.what()), Blame::kOurs}, false);
  }
}
