// Memory of the machine.
#pragma once

#include <cstdint>

namespace nereid {

// Bytes that processes can still get without swapping: what the kernel calls available, which counts cached
// files, and no more than the limit of the container leaves. 0 where neither is known.
int64_t available_memory();

}  // namespace nereid
