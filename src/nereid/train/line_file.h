// Files of lines that a run appends to, step by step, and cuts off where it goes on from a checkpoint.
#pragma once

#include <filesystem>
#include <string_view>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::train {

// Opened for appending, without the lines from the first one of `from_step` or later on, and without a last
// line that has no end. Each line is an object with `step`; steps ascend.
Result<Fd> open_cut_off(const std::filesystem::path& path, int64_t from_step);

Status append(const Fd& file, const std::filesystem::path& path, std::string_view bytes);

}  // namespace nereid::train
