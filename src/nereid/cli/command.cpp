#include "nereid/cli/command.h"

#include <CLI/CLI.hpp>

namespace nereid::cli {

void add_json_flag(CLI::App& command, Chosen& chosen, const std::string& description) {
  command.add_flag("--json", chosen.json, description);
}

}  // namespace nereid::cli
