// What a traced forward does, step by step.
#pragma once

#include <string>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// A line for each call of the last forward, as "#2 softmax(#1, -1) [8, 32]": its number, the operator, what
// it is given (steps by their numbers, a step's further results as "#1.2", arguments and state by name,
// numbers as they are) and the sizes of its results; a view that is not its tensor from the first element on,
// one after the other, has its strides and its first element in it, too: "#3 slice(#2, 1, 2, 5) [8, 3, 16]
// strides 32 * 16, 16, 1 from 2 * 16"; then "returns #2". `source` names forward's arguments.
std::string trace_summary(const trace::Trace& trace, const std::string& source);

// As a small model's plan begins: the same, with sizes written as their products (collapsed_dims.h).
std::string prefill_summary(const trace::Trace& trace, const std::string& source);

}  // namespace nereid::compiler
