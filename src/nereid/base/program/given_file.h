// Files that a command line names, checked before the work.
#pragma once

#include <filesystem>

#include "nereid/base/result.h"

namespace nereid {

// An error (blamed on the input) where there is no such file, or none that may be read. Nothing is opened: a
// pipe's writer would take that for its reader.
Status can_be_read(const std::filesystem::path& path);

}  // namespace nereid
