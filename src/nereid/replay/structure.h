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
// shape or a dtype differs; then the pairs are not to be compared. Lists and tuples count as the same.
struct Pairing {
  std::vector<OutputPair> pairs;
  std::string difference;
};
Pairing pair_outputs(const trace::Trace& reference, const trace::Trace& candidate);

// The reference with its integer inputs pinned to this draw's values where the candidate's host code read them: its
// trace holds for these alone.
trace::Trace pinned_as(trace::Trace reference, const trace::Trace& candidate);

const trace::Phase* judged_forward(const trace::Trace& trace);

}  // namespace nereid::replay
