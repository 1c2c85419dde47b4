// `nereid train pairs`: training pairs of tasks that are given as lines.
#pragma once

#include "nereid/cli/command.h"

namespace nereid::cli {

void add_pairs_command(CLI::App& train, Chosen& chosen);

}  // namespace nereid::cli
