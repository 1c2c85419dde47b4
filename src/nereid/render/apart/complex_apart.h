// Complex numbers taken apart: as pairs of real ones.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// Arithmetic, abs, exp, sums, polar and complex: adds the steps and returns true, or adds none. Calls without
// complex tensors (float32's, c64) are none of these.
bool complex_apart(SimplerSteps& steps);

}  // namespace nereid::render
