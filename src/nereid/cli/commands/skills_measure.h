// `nereid skills admit` and `learn`: the subcommands that judge answers.
#pragma once

#include "nereid/cli/commands/skills_command.h"

namespace nereid::cli {

void add_skill_measurements(CommandGroup<SkillsOptions>& skills);

}  // namespace nereid::cli
