// The numbers of a constant that the trace carries.
#pragma once

#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// In the order in which they lie; empty where the type is none of those that are written out.
std::vector<double> constant_numbers(const trace::Storage& storage, trace::DType type);

}  // namespace nereid::compiler
