#include "nereid/gpu/launch_plan.h"

#include <cuda.h>

int nereid_launch(const NereidPlan* plan, void* stream, const uint64_t* pointers) {
  const auto launch_kernel_ex = reinterpret_cast<decltype(&cuLaunchKernelEx)>(plan->launch_kernel_ex);
  for (const NereidLaunch *one = plan->launch, *end = one + plan->launches; one != end; ++one) {
    uint64_t values[kNereidMaxParameters];
    void* parameters[kNereidMaxParameters];
    for (uint32_t i = 0; i < one->parameters; ++i) {
      const NereidParameter& parameter = one->parameter[i];
      values[i] = parameter.value + (parameter.slot >= 0 ? pointers[parameter.slot] : 0);
      parameters[i] = &values[i];
    }
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    CUlaunchConfig config{};
    config.gridDimX = one->grid[0], config.gridDimY = one->grid[1], config.gridDimZ = one->grid[2];
    config.blockDimX = one->threads, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = one->shared_bytes;
    config.hStream = static_cast<CUstream>(stream);
    if (one->cooperative != 0) config.attrs = &cooperative, config.numAttrs = 1;
    const CUresult code =
        launch_kernel_ex(&config, static_cast<CUfunction>(one->function), parameters, nullptr);
    if (code != CUDA_SUCCESS) return static_cast<int>(code);
  }
  return 0;
}
