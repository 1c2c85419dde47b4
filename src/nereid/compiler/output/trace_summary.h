// What a traced forward does, step by step.
#pragma once

#include <string>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// First the sizes of what is given, arguments and state, in the order of its use: "given x [8, 20], weight
// [32, 20]". Then a line for each call of the last forward, as "#2 softmax(#1, -1) [8, 32]": its number, the
// operator, what it is given (steps by their numbers, a step's further results as "#1.2", arguments and state
// by name, numbers as they are) and the sizes of its results; a view that is not its tensor from the first
// element on, one after the other, has its strides and its first element in it, too: "#3 slice(#2, 1, 2, 5)
// [8, 3, 16] strides 32 * 16, 16, 1 from 2 * 16"; then "returns #2". A reduction that keeps its axes ends
// with `keepdim`, a transposed convolution with `transposed`: sizes follow from these (lm/plan_sizes).
// `source` names forward's arguments.
std::string trace_summary(const trace::Trace& trace, const std::string& source);

// As a small model's plan begins: the same, with sizes written as their products (collapsed_dims.h).
std::string prefill_summary(const trace::Trace& trace, const std::string& source);

}  // namespace nereid::compiler
