// Replay on the CPU: libtorch's allocator, memfds as shared blocks, the TTIR executor for launches.
#pragma once

#include <memory>

#include "nereid/replay/worker/machine.h"

namespace nereid {
class ThreadPool;
}

namespace nereid::replay {

// `pool` may be null: launches run on the calling thread alone.
std::unique_ptr<Machine> make_cpu_machine(ThreadPool* pool = nullptr);

}  // namespace nereid::replay
