// Interpolation taken apart: copies by whole factors, and weighted sums of neighbours.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// aten::upsample_{linear1d, bilinear2d, trilinear3d} and aten::upsample_nearest{1, 2, 3}d (by whole factors):
// adds the steps and returns true, or adds none.
bool upsample_linear_apart(SimplerSteps& steps);
bool upsample_nearest_apart(SimplerSteps& steps);

}  // namespace nereid::render
