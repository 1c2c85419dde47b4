// A driver for tests: memory as bookkeeping, launches as records.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nereid/gpu/driver.h"

namespace nereid::gpu {

// One at a time: the driver's functions are plain pointers, so what they record is global.
struct FakeDriver {
  static constexpr size_t kGranularity = size_t{2} << 20;

  struct Record {
    std::map<CUdeviceptr, size_t> reserved, mapped;
    std::map<CUmemGenericAllocationHandle, size_t> handles;
    std::map<CUdeviceptr, CUmemAccess_flags> access;
    std::map<CUdeviceptr, unsigned char> bytes;  // written by memset, sparsely: only what a test looks at
    std::set<CUmodule> modules;
    std::vector<CUlaunchConfig> launches;
    std::vector<std::vector<std::string>> attributes;  // of each launch
    std::map<CUfunction_attribute, int> function_attributes;
    CUresult launch_result = CUDA_SUCCESS;
    std::string fail;  // the name of a function that fails with CUDA_ERROR_OUT_OF_MEMORY
    CUdeviceptr next = CUdeviceptr{1} << 40;
    unsigned long long next_handle = 1;
    // The last tensor map that was encoded, innermost dimension first.
    std::vector<uint64_t> map_dims, map_strides;
    std::vector<uint32_t> map_box;
    int map_type = 0, map_swizzle = 0;
    void* map_base = nullptr;
    bool map_nan = false;
  };
  static Record& record();
  static Record& reset();
  static const Driver& driver();
};

}  // namespace nereid::gpu
