// Outputs that hang on indices: where several answers are right, the truth is the one that the candidate
// chose.
#pragma once

#include <vector>

#include "nereid/replay/worker/trial/trial_forward.h"

namespace nereid::replay {

// Outputs that are indices are compared by what they point to. `own_values` are those of the reference's own
// run.
void find_places(TrialForward& forward, const Comparison& comparison, std::vector<OutputTensors>& outputs,
                 const IndexOperands& values, const IndexOperands& own_values);

// The order of an answer to topk(sorted=False): of its places where these are an output, else of its
// values. The outputs' truth, and the reference's own, are then those in that order. False where the
// answer shows none.
bool follow_order(TrialForward& forward, const Comparison& comparison, std::vector<OutputTensors>& outputs,
                  const IndexOperands& values);

// Where a choice among equal numbers decides what is computed from it, any choice is right: elements take
// what another choice makes of them, if that is what the candidate has. Equal are also numbers that rounding
// may make so, a saturated tanh for instance: there the first or the last of those within some ulps of the
// best.
bool choose_among_equals(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs, const IndexOperands& values,
                         const IndexOperands& own_values);

}  // namespace nereid::replay
