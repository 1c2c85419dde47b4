#include <CLI/CLI.hpp>
#include <memory>

#include "nereid/app/command.h"
#include "nereid/app/output.h"
#include "nereid/base/file.h"
#include "nereid/base/json.h"

namespace nereid::app {
namespace {

constexpr const char* kExamples = R"(Examples:
  nereid trace model.py                            what get_inputs, __init__ and forward do, for a person
  nereid trace model.py -o model.trace             the same, kept
  nereid trace model.trace --json | jq .flops      a kept trace, for a program
  nereid trace model.trace --graph | dot -Tsvg     its data flow as a picture)";

struct Options {
  std::string file, output;
};

}  // namespace

void add_trace_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("trace", "Show what a module does: its ATen calls and Triton launches");
  command->footer(kExamples);
  command
      ->add_option("FILE", options->file, "A reference or candidate (.py), or a trace that was kept with -o")
      ->required();
  add_json_flag(*command, chosen, "One JSON object on stdout");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> Result<Answer> {
      NEREID_TRY(const std::string bytes, read_file(options->file));
      NEREID_TRY(const Json document, parse_json(bytes, options->file));
      NEREID_TRY_STATUS(write_stdout(document.dump() + "\n"));
      return Answer::kYes;
    };
  });
}

}  // namespace nereid::app
