#include "nereid/cli/language_model.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "nereid/base/program/installation.h"

namespace nereid::cli {

Result<Answer> exec_language_model(std::vector<std::string> arguments) {
  NEREID_TRY(const auto installation, Installation::locate());
  const auto program = installation.bin / "nereid-lm";
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return our_error("{}: {}", program.string(), std::strerror(errno));
}

void add_language_model_commands(CLI::App& app, Chosen& chosen) {
  for (const auto& [name, what] :
       {std::pair("export", "Convert a checkpoint for transformers: [DIR] -o DIR"),
        std::pair("generate", "Continue prompts with a language model: --prompt TEXT"),
        std::pair("serve-model", "Serve a language model at OpenAI's chat completion endpoint")}) {
    auto* command = app.add_subcommand(name, what);
    // Options are nereid-lm's, and so is their help.
    command->set_help_flag("");
    command->prefix_command();
    command->callback([command, &chosen] {
      chosen.run = [command] {
        auto arguments = command->remaining();
        arguments.insert(arguments.begin(), command->get_name());
        return exec_language_model(std::move(arguments));
      };
    });
  }
}

}  // namespace nereid::cli
