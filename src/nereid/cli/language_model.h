// The other program: nereid-lm, which links libtorch.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/cli/command.h"

namespace nereid::cli {

// This process becomes nereid-lm with these arguments; returns only where that fails.
Result<Answer> exec_language_model(std::vector<std::string> arguments);

}  // namespace nereid::cli
