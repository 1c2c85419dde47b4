// Where a GPU's time goes: the kernels of some code, by how long they took together.
#pragma once

#include <functional>
#include <string>

#include "nereid/base/result.h"

namespace nereid::train {

// Runs `work` under PyTorch's profiler. The table: a line for each kernel, the longest first (time of all its
// launches, their number, its name); at the end the kernels' sum and the wall-clock time of all, and when the
// GPU was idle between them. Without a GPU it has PyTorch's operators instead of kernels.
Result<std::string> profiled(const std::function<Status()>& work);

}  // namespace nereid::train
