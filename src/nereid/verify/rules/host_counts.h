// How often something is done, as host Python worked it out from integer inputs.
//
// A kernel that adds x to itself n times, n programs that each add x, or n launches scale by n: there n is
// data, though it is only a loop's bound or a grid. Honest numbers of this kind are sizes: how long something
// is, how many of them there are, in how many blocks.
#pragma once

#include <optional>

#include "nereid/verify/analysis/dataflow.h"
#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/rules/host_values.h"

namespace nereid::verify {

// The first number that decides how often a loop of a launch turns, how many programs of one add something
// up, or how many launches of one kernel there are, that differs from that of the other calls, which had
// other inputs, and is no size made of the inputs in all calls alike. Sizes are: a number of an input, of its
// differences, of its running sums, or the largest, the smallest, the sum of these, or how many there are
// (all, other than zero, different ones); of these, moved by at most one, the blocks of up to 4,096 that hold
// it, or the next power of two; and one factor times that.
std::optional<HostValue> counted_by_host(const TraceAnalysis& facts, const Dataflow& flow);

}  // namespace nereid::verify
