// What holds of every trace that the tracer writes of a candidate, whatever the candidate does; a trace that
// breaks it was written by something else in the candidate's process.
//
// The decoder has checked that the document means something. This checks that it is about the task: that the
// inputs are those that were given, as many calls were traced as were asked for, in order, and nothing is
// used before it was made.
#pragma once

#include <optional>
#include <string>

#include "nereid/trace/trace.h"

namespace nereid::trace {

// Why `candidate` cannot be the trace of a file that was given the inputs of `reference` for `calls` calls:
// the end of a sentence, without its full stop ("the inputs of call 1 are not those that were given").
// Nothing where it can be.
std::optional<std::string> find_forgery(const Trace& candidate, const Trace& reference, int calls);

}  // namespace nereid::trace
