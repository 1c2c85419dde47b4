#include "nereid/app/command.h"

#include <CLI/CLI.hpp>

namespace nereid::app {

void add_json_flag(CLI::App& command, Chosen& chosen, const std::string& description) {
  command.add_flag("--json", chosen.json, description);
}

int exit_code(Blame blame) {
  switch (blame) {
    case Blame::kInput:
      return 2;
    case Blame::kOurs:
      return 3;
    case Blame::kInterrupted:
      return 130;
  }
  return 3;
}

}  // namespace nereid::app
