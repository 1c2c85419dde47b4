// A trace as a page for a person: what went in and came out, the module's state, and phase by phase who did
// what.
#pragma once

#include <string>
#include <vector>

#include "nereid/cli/output.h"
#include "nereid/trace/cost.h"
#include "nereid/trace/trace.h"

namespace nereid::cli {

struct PageOptions {
  Terminal terminal;
  bool all = false;  // every step of every phase; else long phases are cut and equal forward calls shown once
};

// `costs`: of each step of each phase of the trace. `idle`: of each step of the last forward, that what it
// writes reaches no output.
std::string trace_page(const trace::Trace& trace, const std::vector<std::vector<trace::StepCost>>& costs,
                       const std::vector<bool>& idle, const PageOptions& options);

}  // namespace nereid::cli
