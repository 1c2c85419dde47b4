// Engine and trainer on this host's devices, of one set of weights.
#pragma once

#include "nereid/train/rl/policy/policy.h"

namespace nereid::train {

Result<std::unique_ptr<Policy>> open_local_policy(const PolicySetup& setup);

}  // namespace nereid::train
