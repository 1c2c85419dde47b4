// What the values that a kernel stores are made of: data, as opposed to addresses, masks and the ways through
// its code.
#pragma once

#include <vector>

namespace nereid::ttir {

struct Module;
struct Function;

struct DataPaths {
  // [written][source]: what is loaded through parameter `source` (of a pointer or a descriptor), or its own
  // value (of a scalar), may be part of what is stored through parameter `written`. Not so what only decides
  // where or whether something is loaded or stored, which of two values is selected, or how often a loop
  // turns.
  std::vector<std::vector<bool>> sources;
  // Numbers of the text itself that may be part of what is stored, each once, sorted.
  std::vector<double> constants;
  // Of each parameter: where something is written through it, or whether, may depend on what was loaded.
  std::vector<bool> placed_by_data;
  // Of each parameter: its own value, or what is loaded through it, may decide how often a loop turns.
  std::vector<bool> repeats;
  // Numbers of the text that may be part of how often a loop turns, each once, sorted.
  std::vector<double> repeating_constants;
  // How many programs run may be part of what is stored: they add to memory, or ask for the number.
  bool counts_programs = false;
};

// For the parameters of `kernel`. Everything is true where a pointer comes from a number or from memory.
DataPaths data_paths(const Module& module, const Function& kernel);

}  // namespace nereid::ttir
