// The subcommands of `nereid` (base/program/command.h says what they are to its frame), and what several of
// them share.
#pragma once

#include <string>
#include <string_view>

#include "nereid/base/program/command.h"
#include "nereid/base/result.h"

namespace CLI {
class App;
}

namespace nereid::ops {
struct Operator;
}

namespace nereid::cli {

// Each adds one subcommand with its options, examples and `--json`, and sets `chosen.run` when it is given.
void add_trace_command(CLI::App& app, Chosen& chosen);
void add_verify_command(CLI::App& app, Chosen& chosen);
void add_serve_command(CLI::App& app, Chosen& chosen);
void add_mutate_command(CLI::App& app, Chosen& chosen);
void add_lower_command(CLI::App& app, Chosen& chosen);
void add_ops_command(CLI::App& app, Chosen& chosen);
void add_synth_command(CLI::App& app, Chosen& chosen);
void add_harvest_command(CLI::App& app, Chosen& chosen);
void add_choices_command(CLI::App& app, Chosen& chosen);
void add_store_command(CLI::App& app, Chosen& chosen);
void add_skills_command(CLI::App& app, Chosen& chosen);
void add_train_command(CLI::App& app, Chosen& chosen);
void add_optimize_command(CLI::App& app, Chosen& chosen);
void add_eval_command(CLI::App& app, Chosen& chosen);
void add_language_model_commands(CLI::App& app, Chosen& chosen);
void add_runs_command(CLI::App& app, Chosen& chosen);
void add_formats_commands(CLI::App& app, Chosen& chosen);
void add_import_gguf_command(CLI::App& app, Chosen& chosen);
void add_doctor_command(CLI::App& app, Chosen& chosen);
void add_tokenize_command(CLI::App& app, Chosen& chosen);

// Adds the `--json` flag, which every subcommand has.
void add_json_flag(CLI::App& command, Chosen& chosen, const std::string& description);

// The operator of that name; the error names the nearest.
Result<const ops::Operator*> find_operator(std::string_view name);

}  // namespace nereid::cli
