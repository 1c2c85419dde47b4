// What a forward leaves to its caller: names of the state with another tensor or none, and inputs that are
// other views of their data (notes of a trace: docs/trace_format.md), and outputs that are yet to be negated
// or that share memory.
#pragma once

#include <string_view>
#include <vector>

#include "nereid/replay/report.h"
#include "nereid/trace/trace.h"
#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// Names without their tensors, inputs that are other views, outputs that whatever reads them negates or
// conjugates, and outputs in the same memory: what is so of the candidate alone.
std::vector<Evidence> left_to_the_caller(const TraceAnalysis& reference, const TraceAnalysis& candidate);

bool is_left_note(std::string_view note);

// Drops from what was written the state that the reference gives to another tensor: a candidate may write it
// in place.
void allow_rebound_state(replay::TrialReport& report, const trace::Trace& reference);

}  // namespace nereid::verify
