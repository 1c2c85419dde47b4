// Distributions of inputs and parameters that the search for witnesses tries, written into a reference's
// trace.
#pragma once

#include <optional>
#include <string_view>

#include "nereid/trace/trace.h"

namespace nereid::mutate {

int distributions();
std::string_view distribution_name(int distribution);

// The reference with calls after those that make its floating-point inputs (and, for some, its parameters),
// which put other numbers there. Nothing where the task has no such tensor.
std::optional<trace::Trace> with_inputs(const trace::Trace& reference, int distribution);

}  // namespace nereid::mutate
