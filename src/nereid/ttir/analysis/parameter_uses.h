// Through which of its parameters a kernel may read and write memory.
#pragma once

#include <vector>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

struct ParameterUse {
  bool read = false, written = false;
  bool chosen = false;  // where something is written, the address may stem from other parameters as well
};

// One for each parameter of `kernel`. Pointers are followed through arithmetic, loops, branches, calls and
// descriptors; where one comes from a number or from memory, every pointer and descriptor counts as read and
// written.
std::vector<ParameterUse> parameter_uses(const Module& module, const Function& kernel);

}  // namespace nereid::ttir
