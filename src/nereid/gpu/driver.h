// The CUDA driver, opened at run time: nothing here is linked, so the program builds and runs where there is
// no GPU.
//
// `Driver` is a table of the driver's own functions; tests fill one with functions of their own.
#pragma once

#include <cuda.h>

#include <optional>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

// Every function that is used; those behind a macro in cuda.h (cuMemAlloc is cuMemAlloc_v2) resolve to what
// it names.
// clang-format off
#define NEREID_CUDA_FUNCTIONS(X)                                                                    \
  X(cuInit) X(cuDriverGetVersion) X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName)             \
  X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDevicePrimaryCtxRetain)                           \
  X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxSynchronize)            \
  X(cuGetErrorName) X(cuGetErrorString) X(cuModuleLoadData) X(cuModuleUnload)                       \
  X(cuModuleGetFunction) X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig)        \
  X(cuLaunchKernelEx) X(cuTensorMapEncodeTiled) X(cuMemGetInfo) X(cuMemAlloc) X(cuMemFree)          \
  X(cuMemcpyDtoH) X(cuMemcpyHtoD) X(cuMemcpyDtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyHtoDAsync)    \
  X(cuMemsetD8Async) X(cuMemsetD32Async) X(cuMemAddressReserve) X(cuMemAddressFree)                 \
  X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess)                        \
  X(cuMemGetAllocationGranularity) X(cuMemExportToShareableHandle)                                  \
  X(cuMemImportFromShareableHandle) X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize)     \
  X(cuStreamQuery) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize)        \
  X(cuEventQuery) X(cuEventElapsedTime) X(cuStreamBeginCapture) X(cuStreamEndCapture)               \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphInstantiateWithFlags) X(cuGraphExecDestroy)           \
  X(cuGraphLaunch) X(cuGraphAddChildGraphNode) X(cuGraphAddEventRecordNode)                         \
  X(cuGraphAddMemsetNode) X(cuGraphAddMemcpyNode) X(cuGraphGetNodes) X(cuGraphNodeGetType)          \
  X(cuGraphUpload)
// clang-format on

namespace nereid::gpu {

struct Driver {
#define NEREID_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  NEREID_CUDA_FUNCTIONS(NEREID_CUDA_MEMBER)
#undef NEREID_CUDA_MEMBER

  // Opens libcuda.so.1 and initialises it, once in a process; the same answer ever after. The error reads
  // "no CUDA device: ..." where there is none: a machine without a GPU is no fault of anybody's.
  static Result<const Driver*> open();
};

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string describe(const Driver& driver, CUresult code);
Error cuda_error(const Driver& driver, CUresult code, std::string_view what);

// A code that only a kernel gone wrong can cause, and that ends its context: an unmapped address, a
// misaligned one, a trap. All else is a fault of ours or of the machine.
bool is_kernel_fault(CUresult code);

// NEREID_CUDA(driver, cuMemMap(address, bytes, 0, handle, 0)): returns the error from the enclosing function.
#define NEREID_CUDA(driver, call)                                                \
  do {                                                                           \
    if (const CUresult nereid_code = (driver).call; nereid_code != CUDA_SUCCESS) \
      return ::nereid::gpu::cuda_error(driver, nereid_code, #call);              \
  } while (false)

struct DeviceFacts {
  std::string name;
  int arch = 0;  // 90 for compute capability 9.0
  int multiprocessors = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes_per_block = 0;  // with opting in
  int64_t memory_bytes = 0;
  bool virtual_memory = false;  // cuMemCreate and its kin
  bool memory_to_fd = false;    // such memory can be handed to another process
};
Result<DeviceFacts> device_facts(const Driver& driver, int device);

// The device's primary context, made current for the calling thread; kept for the life of the process.
Status use_primary_context(const Driver& driver, int device);

// Device memory of the driver's own, freed with this.
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> allocate(const Driver& driver, size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  CUdeviceptr data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  DeviceBuffer(const Driver& driver, CUdeviceptr data, size_t bytes)
      : driver_(&driver), data_(data), bytes_(bytes) {}
  const Driver* driver_;
  CUdeviceptr data_ = 0;
  size_t bytes_ = 0;
};

}  // namespace nereid::gpu
