// What host Python worked out from the inputs' values and put into a trace as numbers of the answer.
//
// Integer inputs that host code reads are pinned: the trace holds for their values alone. They may shape it
// (grids, loops, addresses, masks), and may be handed on as they are; but numbers that were computed from
// them on the host and that become data of an output are an answer which no kernel computed.
#pragma once

#include <optional>
#include <string>

#include "nereid/verify/dataflow.h"
#include "nereid/verify/trace_analysis.h"

namespace nereid::verify {

struct HostValue {
  const StepAnalysis* step = nullptr;  // that is given them
  std::string sentence;
};

// The first such numbers of the judged forward. Numbers follow from the inputs where they differ from those
// of the other calls, which had other inputs. Allowed are, in the order of the input: its values, their
// differences and running sums, all of these times one factor, or one factor divided by them; and of single
// numbers the same.
std::optional<HostValue> computed_on_host(const TraceAnalysis& facts, const Dataflow& flow);

}  // namespace nereid::verify
