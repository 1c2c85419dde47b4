// The functions of the CUDA driver that a prepared plan calls. The library is opened at run time: the
// extension loads where there is no driver, and tests give a library of their own
// (tests/support/fake_cuda.cpp).
#pragma once

#include <cuda.h>

#include <optional>
#include <string>

namespace nereid::python {

// clang-format off
#define NEREID_PLAN_FUNCTIONS(X)                                                                   \
  X(cuLaunchKernelEx) X(cuGetErrorName) X(cuStreamIsCapturing) X(cuThreadExchangeStreamCaptureMode) \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphAddKernelNode) X(cuGraphKernelNodeSetAttribute)       \
  X(cuGraphInstantiateWithFlags) X(cuGraphExecDestroy) X(cuGraphLaunch)
// clang-format on

struct CudaDriver {
#define NEREID_PLAN_MEMBER(name) decltype(&::name) name = nullptr;
  NEREID_PLAN_FUNCTIONS(NEREID_PLAN_MEMBER)
#undef NEREID_PLAN_MEMBER

  // Opens the library, which stays open. Empty: `why` says what is missing.
  static std::optional<CudaDriver> open(const char* library, std::string& why);

  // "CUDA error 2 (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string describe(CUresult code) const;
};

}  // namespace nereid::python
