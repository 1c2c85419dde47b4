// The kernels that compare outputs on a GPU, run on the CPU's tensors: block after block, in one thread.
#pragma once

#include <memory>

#include "nereid/replay/worker/compare/fused_metrics.h"

namespace nereid::replay {

std::unique_ptr<FusedMetrics> on_the_host();

}  // namespace nereid::replay
