// Which of the candidate's tensors stand for the reference's parameters and buffers: those take the
// reference's values in every trial.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// By name, where dtype and shape (dimensions of 1 aside) agree. What init fills with one number, or makes of
// constants alone (a table of slopes, the identity), may have another name, or be no registered state at all:
// it is paired in order with a tensor of the candidate's that has the same dtype, shape and number, or that
// the same operators made of the same constants. A default that is paired with nothing is changed in the
// reference alone: a candidate that has no gamma must not be taken for one that multiplies by it.
struct StatePairing {
  std::vector<std::pair<trace::ValueId, trace::ValueId>> values;  // reference's, candidate's
  // Of `values`, those that have the name of the reference's, or are a registered parameter: state of which
  // the caller expects to find it as the reference leaves it.
  std::vector<bool> registered;
  std::vector<std::string> unpaired;  // the reference's parameters and persistent buffers, by name
};
StatePairing pair_state(const trace::Trace& reference, const trace::Trace& candidate);

// Of each state in the trace's order: whether random numbers went into what the constructor left in it.
std::vector<bool> made_by_chance(const trace::Trace& trace);

// The number that module and init fill the whole of a value's storage with; nothing where it is another kind
// of content.
std::optional<double> filled_with(const trace::Trace& trace, trace::ValueId value);

}  // namespace nereid::replay
