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

// State by name: where every parameter and persistent buffer of the reference is in the candidate with the same shape
// and dtype, and every parameter of the candidate in the reference. `why_not` otherwise.
// A candidate that holds nothing at all pairs with any reference: what it leaves out may differ from any default.
struct StatePairing {
  std::vector<std::pair<trace::ValueId, trace::ValueId>> values;  // reference's, candidate's
  std::string why_not;
};
StatePairing pair_state(const trace::Trace& reference, const trace::Trace& candidate);

const trace::Phase* judged_forward(const trace::Trace& trace);

}  // namespace nereid::replay
