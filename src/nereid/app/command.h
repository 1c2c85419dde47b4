// What a subcommand is to the frame in nereid_main.cpp: something that registers itself, and then runs to an
// exit code.
//
// A command parses nothing and prints no errors itself. It writes data to stdout (through `Output`),
// everything else to stderr, and returns an Error where it cannot answer; the frame prints it and chooses the
// exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

namespace CLI {
class App;
}

namespace nereid::ops {
struct Operator;
}

namespace nereid::app {

// What the command line is told; an Error's blame gives 2, 3 or 130.
// kBadInput and kOurError: the command has told it itself, as a part of its data.
enum class Answer : int { kYes = 0, kNo = 1, kBadInput = 2, kOurError = 3 };

// The frame's side of a parsed command line.
struct Chosen {
  bool json = false;                    // --json: errors are told as a JSON object on stdout too
  std::function<Result<Answer>()> run;  // set by the callback of the subcommand that was given
};

// Each adds one subcommand with its options, examples and `--json`, and sets `chosen.run` when it is given.
void add_trace_command(CLI::App& app, Chosen& chosen);
void add_verify_command(CLI::App& app, Chosen& chosen);
void add_lower_command(CLI::App& app, Chosen& chosen);
void add_ops_command(CLI::App& app, Chosen& chosen);
void add_synth_command(CLI::App& app, Chosen& chosen);
void add_store_command(CLI::App& app, Chosen& chosen);
void add_train_command(CLI::App& app, Chosen& chosen);
void add_optimize_command(CLI::App& app, Chosen& chosen);
void add_eval_command(CLI::App& app, Chosen& chosen);
void add_language_model_commands(CLI::App& app, Chosen& chosen);
void add_runs_command(CLI::App& app, Chosen& chosen);
void add_tokenize_command(CLI::App& app, Chosen& chosen);

// Adds the `--json` flag, which every subcommand has.
void add_json_flag(CLI::App& command, Chosen& chosen, const std::string& description);

// The operator of that name; the error names the nearest.
Result<const ops::Operator*> find_operator(std::string_view name);

int exit_code(Blame blame);

}  // namespace nereid::app
