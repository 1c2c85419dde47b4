// The kernels of replay/worker/compare/error_metrics_kernels.h on a GPU.
#pragma once

#include <memory>

#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/worker/compare/fused_metrics.h"

namespace nereid::replay::cuda {

// Loads the machine code that this program holds for the machine's GPU, or PTX where it holds none. Launches
// go to the machine's stream. `machine` must outlive what is returned.
Result<std::unique_ptr<FusedMetrics>> load_fused_metrics(const CudaMachine& machine);

}  // namespace nereid::replay::cuda
