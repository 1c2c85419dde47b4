// Programmatic dependent launch: a kernel launched with launch_pdl=True may begin while the kernel before it
// still runs, and waits for it with griddepcontrol.wait.
#pragma once

#include <string_view>

namespace nereid::ttir {

// The TTIR text's kernels wait, on every path, before they access memory. True where they access none.
bool waits_before_memory(std::string_view ttir);

}  // namespace nereid::ttir
