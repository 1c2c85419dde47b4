// nereid-lm: the program that runs language models. It links libtorch, which `nereid` does not; the command
// line is the same, and `nereid generate ...` becomes it. libtorch's CUDA half is loaded when a GPU is wanted
// for, so one program serves both kinds of machine.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "nereid/base/program/help.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/lm/cli/command.h"

int main(int argc, char** argv) {
  nereid::reserve_standard_streams();
  CLI::App app{"The half of nereid that runs language models.", "nereid"};
  app.formatter(std::make_shared<nereid::HelpFormatter>());
  app.require_subcommand(1);
  nereid::Chosen chosen;
  nereid::lm::add_generate_command(app, chosen);
  nereid::lm::add_propose_command(app, chosen);
  nereid::lm::add_serve_command(app, chosen);
  nereid::lm::add_logits_command(app, chosen);
  nereid::lm::add_export_command(app, chosen);
  nereid::lm::add_train_rl_command(app, chosen);
  nereid::lm::add_train_sft_command(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return nereid::exit_code_of(app, e);
  }
  const int code = nereid::run_to_exit_code(chosen);
  std::fflush(nullptr);
  ::_exit(code);  // libtorch's tables of operators take 80 ms to take down
}
