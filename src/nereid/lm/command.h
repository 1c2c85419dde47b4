// What a subcommand of nereid-lm is to the frame in nereid_lm_main.cpp: something that registers itself, and then runs to an exit code.
#pragma once

#include <functional>

#include "nereid/base/result.h"

namespace CLI {
class App;
}

namespace nereid::lm {

// The frame's side of a parsed command line.
struct Chosen {
  bool json = false;               // errors are told as a JSON object on stdout too
  std::function<Result<int>()> run;  // set by the subcommand that was given; its exit code
};

void add_generate_command(CLI::App& app, Chosen& chosen);
void add_serve_command(CLI::App& app, Chosen& chosen);
void add_logits_command(CLI::App& app, Chosen& chosen);
void add_export_command(CLI::App& app, Chosen& chosen);
void add_train_rl_command(CLI::App& app, Chosen& chosen);
void add_train_sft_command(CLI::App& app, Chosen& chosen);

}  // namespace nereid::lm
