// Kernels that are launched one after the other with the same arguments but for pointers, as written files do
// (python/nereid/_written/direct.py). A C interface: libnereid_launch.so is loaded by Python with ctypes
// (python/nereid/_launch.py), is linked against nothing, and works with every Python and torch.
#pragma once

#include <stdint.h>

extern "C" {

// One kernel parameter: `value`, of which the kernel reads as many bytes as the parameter has
// (little-endian); with slot >= 0 it is pointers[slot] + value.
typedef struct {
  uint64_t value;
  int64_t slot;
} NereidParameter;

typedef struct {
  void* function;         // CUfunction
  uint32_t grid[3];       // thread blocks, each at least 1
  uint32_t threads;       // of a block
  uint32_t shared_bytes;  // dynamic shared memory of a block
  uint32_t cooperative;   // 1: all blocks are resident together, or the launch fails
  uint32_t parameters;    // at most kNereidMaxParameters
  const NereidParameter* parameter;
} NereidLaunch;

typedef struct {
  void* launch_kernel_ex;  // the address of the CUDA driver's cuLaunchKernelEx
  const NereidLaunch* launch;
  uint32_t launches;
} NereidPlan;

enum { kNereidMaxParameters = 256 };

// Queues all launches of the plan on `stream` (CUstream). Returns 0, or the CUDA driver's first error code
// (CUresult); what follows it is not launched. Thread-safe.
__attribute__((visibility("default"))) int nereid_launch(const NereidPlan* plan, void* stream,
                                                         const uint64_t* pointers);
}
