// nereid-lm: the program that runs language models. It links libtorch, which `nereid` does not; the command line is the same, and `nereid generate ...`
// becomes it. libtorch's CUDA half is loaded when a GPU is asked for, so one program serves both kinds of machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "nereid/base/interrupt.h"
#include "nereid/base/json.h"
#include "nereid/lm/command.h"

namespace {

using nereid::Blame;
using nereid::Error;

int exit_code(Blame blame) {
  switch (blame) {
    case Blame::kInput: return 2;
    case Blame::kOurs: return 3;
    case Blame::kInterrupted: return 130;
  }
  return 3;
}

int tell(const Error& error, bool json) {
  fmt::print(stderr, "nereid: {}\n", error.message);
  if (json) {
    const char* blame = error.blame == Blame::kInput ? "input" : error.blame == Blame::kOurs ? "ours" : "interrupted";
    const nereid::Json document = {{"error", {{"message", error.message}, {"blame", blame}}}};
    fmt::print("{}\n", document.dump(-1, ' ', false, nereid::Json::error_handler_t::replace));
  }
  return exit_code(error.blame);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The half of nereid that runs language models.", "nereid-lm"};
  app.require_subcommand(1);
  nereid::lm::Chosen chosen;
  nereid::lm::add_generate_command(app, chosen);
  nereid::lm::add_serve_command(app, chosen);
  nereid::lm::add_logits_command(app, chosen);
  nereid::lm::add_export_command(app, chosen);
  nereid::lm::add_train_rl_command(app, chosen);
  nereid::lm::add_train_sft_command(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : exit_code(Blame::kInput);
  }
  nereid::watch_for_interrupts();
  try {
    const auto code = chosen.run();
    if (code.ok()) return *code;
    if (nereid::interrupted() && code.error().blame != Blame::kInterrupted)
      return tell(Error{"interrupted", Blame::kInterrupted}, chosen.json);
    return tell(code.error(), chosen.json);
  } catch (const std::exception& e) {
    // libtorch's exceptions end here: a first line with the reason, then a stack.
    const std::string what = e.what();
    return tell(Error{fmt::format("unexpected: {}", what.substr(0, what.find('\n'))), Blame::kOurs}, chosen.json);
  }
}
