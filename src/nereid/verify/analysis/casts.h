// What kind of cast a step makes.
#pragma once

#include "nereid/trace/access.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

// By the dtypes that the step reads and writes.
StepAnalysis::Cast cast_of(const trace::Trace& trace, const trace::StepAccess& access);

}  // namespace nereid::verify
