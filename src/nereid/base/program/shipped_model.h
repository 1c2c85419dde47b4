// The language model that comes with this program: the default of options that name a model.
#pragma once

#include <filesystem>

#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"

namespace nereid {

// Its folder. An Error (blamed on the input, which names no model) says where it would lie.
Result<std::filesystem::path> shipped_model(const Installation& installation);

}  // namespace nereid
