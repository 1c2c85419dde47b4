// The developers' mode: one replay of a trace on the CPU, its tensors written to a folder, to be compared
// with PyTorch.
#pragma once

#include <filesystem>

#include "nereid/base/result.h"

namespace nereid::replay {

// Writes manifest.json ({"outputs": [...], "inputs": [...]}, each {"path", "dtype", "sizes",
// "file"}, or
// {"failure": "..."}) and one raw file a tensor, contiguous.
Status dump_replay(const std::filesystem::path& trace, uint64_t seed, const std::filesystem::path& folder,
                   bool whole);

}  // namespace nereid::replay
