// What a program's values will be like, from its graph and sizes alone: whether its result depends on its
// inputs.
#pragma once

#include <string>

#include "nereid/synth/program.h"

namespace nereid::synth {

// True where some value is, for nearly all inputs, constant by algebra (a softmax summed along its axis),
// saturated (tanh of a long sum), within rounding of its mean, vanishing, or near overflow. An
// estimate: means and standard deviations are propagated as if elements were independent and roughly normal.
// docs/synth.md says how often it errs.
bool is_degenerate(const Program& program, std::string* why = nullptr);

}  // namespace nereid::synth
