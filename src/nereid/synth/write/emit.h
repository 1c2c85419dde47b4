// Programs as KernelBench writes its tasks: class Model, get_inputs(), get_init_inputs().
#pragma once

#include <string>
#include <vector>

#include "nereid/synth/program.h"
#include "nereid/synth/write/code_style.h"

namespace nereid::synth {

// Where in the file things are and what they are called there: what a trace of it says.
struct Layout {
  std::vector<int> lines;              // of each step: the line that calls it
  std::vector<int> before;             // of each step: the line of a statement that does its first call; or 0
  std::vector<uint16_t> arguments;     // of forward, in order: inputs
  std::vector<std::string> parameter;  // of each input that is a parameter: its qualified name
  std::vector<std::string> own;        // of each step with tensors of its own: what their names begin with
  struct Owner {
    bool input = false;  // else a step
    uint16_t index = 0;
  };
  std::vector<Owner> state;  // in the module's order
};

// A whole Python file. The same program and style always give the same text.
Layout emit(const Program& program, const CodeStyle& style, std::string& to);

}  // namespace nereid::synth
