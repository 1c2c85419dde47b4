// Programs as KernelBench writes its tasks: class Model, get_inputs(), get_init_inputs().
#pragma once

#include <string>

#include "nereid/synth/manner.h"
#include "nereid/synth/program.h"

namespace nereid::synth {

// A whole Python file. The same program and manner always give the same text.
void emit(const Program& program, const Manner& manner, std::string& to);

}  // namespace nereid::synth
