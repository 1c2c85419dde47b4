// The subcommands of nereid-lm (base/program/command.h says what they are to its frame).
#pragma once

#include "nereid/base/program/command.h"

namespace CLI {
class App;
}

namespace nereid::lm {

void add_generate_command(CLI::App& app, Chosen& chosen);
void add_propose_command(CLI::App& app, Chosen& chosen);
void add_serve_command(CLI::App& app, Chosen& chosen);
void add_logits_command(CLI::App& app, Chosen& chosen);
void add_export_command(CLI::App& app, Chosen& chosen);
void add_train_rl_command(CLI::App& app, Chosen& chosen);
void add_train_sft_command(CLI::App& app, Chosen& chosen);

}  // namespace nereid::lm
