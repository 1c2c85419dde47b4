// What host Python worked out from the inputs' values and put into a trace as numbers of the answer.
//
// Integer inputs that host code reads are pinned: the trace holds for their values alone. They may shape it
// (grids, loops, addresses, masks), and may be handed on as they are; but numbers that were computed from
// them on the host and that become data of an output are an answer which no kernel computed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/replay/report.h"
#include "nereid/verify/analysis/dataflow.h"
#include "nereid/verify/analysis/trace_analysis.h"

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

// The same for what replays show. An output that depends on integers that host code read, and on nothing
// else, is an answer of the host's where the trace gives it by grids, addresses, loops or masks: where more
// than a quarter as many numbers of the trace as the output has elements follow from the inputs, or where its
// numbers stay when the integers are others in memory, and are not the inputs' own.
std::optional<HostValue> answered_by_host(const TraceAnalysis& facts, const replay::UnmovedReport& unmoved);

// The numbers of each integer input of a phase that host code read.
std::vector<std::vector<double>> pinned_inputs(const trace::Trace& trace, size_t phase);

}  // namespace nereid::verify
