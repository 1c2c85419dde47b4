// Convolutions and pools taken apart: products and reductions of the windows that they look at.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// Each adds the steps of its call and returns true, or adds none.
bool convolution_apart(SimplerSteps& steps);
bool max_pool_apart(SimplerSteps& steps);
bool avg_pool_apart(SimplerSteps& steps);
bool adaptive_avg_pool_apart(SimplerSteps& steps);

}  // namespace nereid::render
