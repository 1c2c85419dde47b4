// Comparisons and logic taken apart: as float32 arithmetic whose result, cast to bool, is the flag.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// Comparisons and signs of float32 tensors, logic of flags, and float32 arithmetic, sums and counts that read
// flags or integers, or operands that are broadcast: adds the steps and returns true, or adds none.
// Comparisons of NaN are wrong.
bool comparison_apart(SimplerSteps& steps);
bool sign_apart(SimplerSteps& steps);
bool logic_apart(SimplerSteps& steps);
bool count_apart(SimplerSteps& steps);
bool arithmetic_apart(SimplerSteps& steps);

}  // namespace nereid::render
