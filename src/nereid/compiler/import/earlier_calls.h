// What a module computes in its first call and keeps, as a position bias, or in its constructor, as tables in
// a list: the calls that made it are part of each forward that is written.
#pragma once

#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// Calls before the last forward that made tensors which it reads and which have no name there, in their
// order. None where that is not the same in each call: it follows from an input, from random numbers, from a
// parameter as the constructor has it, or calls after the first change it.
std::vector<const trace::Call*> earlier_calls(const trace::Trace& trace);

}  // namespace nereid::compiler
