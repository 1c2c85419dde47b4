// Checks a parsed module: what the lowering and the executor rely on holds afterwards.
#pragma once

#include "nereid/base/result.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Operand counts, shapes, element types, regions and their terminators, calls (known, not recursive). An
// error names the operation and its source line.
Status verify(const Module& module);

}  // namespace nereid::ttir
