// Launches as text: equal for launches that do the same.
#pragma once

#include <string>

#include "nereid/trace/trace.h"

namespace nereid::verify {

// Kernel, grid, arguments, and the calls before the launch.
std::string launch_text(const trace::Trace& trace, const trace::Alternative& one);
std::string launch_argument_text(const trace::LaunchArg& arg);

}  // namespace nereid::verify
