// A command whose subcommands share one set of options, and which does something when it is called without
// any of them: `nereid store`, `nereid runs`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "nereid/cli/command.h"

namespace nereid::cli {

template <typename Options>
class CommandGroup {
 public:
  using Run = Result<Answer> (*)(const Options&, bool json);

  // `each` adds what the command and all of its subcommands have in common; --json they have anyway.
  CommandGroup(CLI::App& app, Chosen& chosen, const char* name, const char* what, Run alone,
               std::function<void(CLI::App&, Options&)> each = {})
      : chosen_(chosen), each_(std::move(each)), command_(app.add_subcommand(name, what)) {
    command_->require_subcommand(0, 1);
    // The command's own callback comes after a subcommand's.
    command_->callback([command = command_, chosen = chooses(*command_, alone)] {
      if (command->get_subcommands().empty()) chosen();
    });
  }

  CLI::App& command() { return *command_; }
  Options& options() { return *options_; }

  CLI::App& add(const char* name, const char* what, Run run) {
    CLI::App* sub = command_->add_subcommand(name, what);
    sub->callback(chooses(*sub, run));
    return *sub;
  }

 private:
  std::function<void()> chooses(CLI::App& command, Run run) {
    if (each_) each_(command, *options_);
    add_json_flag(command, chosen_, "Print one JSON object, or one per line");
    return [options = options_, &chosen = chosen_, run] {
      chosen.run = [options, &chosen, run] { return run(*options, chosen.json); };
    };
  }

  Chosen& chosen_;
  std::function<void(CLI::App&, Options&)> each_;
  std::shared_ptr<Options> options_ = std::make_shared<Options>();
  CLI::App* command_;
};

}  // namespace nereid::cli
