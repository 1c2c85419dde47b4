// What a launch did, where what it does depends on what it loads: a branch on a flag, a loop as long as a
// row.
//
// Counted by the executor on a copy of the launch's memory on the host, before the launch runs, on the CPU
// and on CUDA alike: of at most kMaxPrograms programs, picked evenly. Storages are copied from the smallest
// on, kMaxCopied bytes in all. Of the larger ones only the pages that those programs touch are: found by a
// run on zeros, and by runs again while they touch others.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "nereid/replay/worker/machine.h"

namespace nereid::replay {

inline constexpr int64_t kMaxPrograms = 256, kMaxCopied = int64_t{256} << 20;

// `bytes`: the request's buffers as tensors of u8, on their device. Nothing where the kernel does the same on
// any data, where our executor does not know it, or where the launch does not fit it.
std::optional<ttir::Work> launch_work(const trace::Trace& trace, const LaunchRequest& request,
                                      const std::vector<at::Tensor>& bytes, int64_t max_copied = kMaxCopied);

}  // namespace nereid::replay
