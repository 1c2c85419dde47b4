// Which outputs of a candidate stand for which of its reference, and which of its parameters are the
// reference's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

struct OutputPair {
  std::string path;  // "output", "output[1]", "output['loss']"
  trace::ValueId reference = -1, candidate = -1;
};

// The tensors of two outputs, paired. `difference` says in one sentence where the structure, a number, a
// shape or a dtype differs; then the pairs are not to be compared. A container may be another one only where
// code that reads the reference's can read it: lists and tuples are the same; a named tuple serves as a
// tuple, a ModelOutput as a dictionary or an object; a dictionary does not serve as an object, nor a tuple as
// a named tuple. Names of classes do not count.
struct Pairing {
  std::vector<OutputPair> pairs;
  std::string difference;
};
Pairing pair_outputs(const trace::Trace& reference, const trace::Trace& candidate);

// The candidate with the named items of its outputs in the reference's order: a replay hands outputs out by
// their places.
trace::Trace ordered_as(const trace::Trace& reference, trace::Trace candidate);

// The reference with its integer inputs pinned to this draw's values where the candidate's host code read
// them: its trace holds for these alone.
trace::Trace pinned_as(trace::Trace reference, const trace::Trace& candidate);

const trace::Phase* judged_forward(const trace::Trace& trace);

}  // namespace nereid::replay
