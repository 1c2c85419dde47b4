// A model that a Tinker-compatible service holds: it samples there, and takes gradients there from advantages
// that are computed here.
//
// The objective's gradient by each token's log-probability is all that a model needs (objective.h): the
// service's loss `importance_sampling` with minus this gradient as a token's advantage has that gradient, for
// every objective.
#pragma once

#include "nereid/train/rl/policy/policy.h"

namespace nereid::train {

Result<std::unique_ptr<Policy>> open_tinker_policy(const PolicySetup& setup);

}  // namespace nereid::train
