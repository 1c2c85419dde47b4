// Divisions by what a masked load did not read. Hardware gives a lane that is off some quotient and goes on,
// and the kernel uses none of it: that is no division by zero. Such a lane gets a number on which no kernel
// can rely, so that one that looks at it is wrong.
#pragma once

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Rewrites integer divisions whose divisor follows from masked loads: where a lane is off and the divisor
// zero, it is divided by one, and the result replaced.
void spare_masked_divisions(Module& module);

}  // namespace nereid::ttir
