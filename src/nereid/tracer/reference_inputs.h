// What a candidate's tracing gets from its reference's trace: the layouts of inputs, and values of integer
// ones.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "nereid/trace/trace.h"

namespace nereid::tracer {

// {"storages": [...], "values": [...], "inputs": [ARG of each call], "init_inputs": ARG} in the encoding of
// docs/trace_format.md, with only what the inputs use, renumbered. Floating-point data is left out.
nlohmann::json reference_inputs(const trace::Trace& reference);

}  // namespace nereid::tracer
