// Inline assembly: the common single instructions as loops; all else is a PtxProgram run lane by lane.
#pragma once

#include <string_view>

#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/ptx/ptx_program.h"

namespace nereid::ttir {

// One instruction on f32 for which there is a loop: "tanh.approx.f32 $0, $1;" and its like; null otherwise.
UnaryKernel known_assembly(std::string_view assembly, std::string_view constraints);

}  // namespace nereid::ttir
