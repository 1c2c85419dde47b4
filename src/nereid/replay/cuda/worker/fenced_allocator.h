// Puts every CUDA tensor that ATen or a replay makes into a mapping of its own while a replay is fenced.
#pragma once

#include <vector>

#include "nereid/replay/cuda/mapping.h"

namespace nereid::replay::cuda {

// Stands before PyTorch's caching allocator from then on: while `fenced` is false, that one answers. Once in
// a process, before the first CUDA tensor; both references must live as long as the process. Set them between
// replays.
void install_fenced_allocator(const Driver& driver, int device, const bool& fenced,
                              const Placement& placement);

// The fenced memory, live or freed since the last question, whose slack somebody wrote to. Synchronous.
struct StraySlack {
  CUdeviceptr data = 0;
  int64_t bytes = 0, strayed = 0;
};
std::vector<StraySlack> fenced_memory_strayed_into();

int64_t fenced_bytes_mapped();

}  // namespace nereid::replay::cuda
