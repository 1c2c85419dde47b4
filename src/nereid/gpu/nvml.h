// What the GPU was doing while it was timed: clocks, temperature, power and throttling, from NVML (opened at
// run time).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::gpu {

struct GpuState {
  int sm_mhz = 0, memory_mhz = 0;  // as they are now
  int max_sm_mhz = 0;
  int celsius = 0;
  double watts = 0;
  uint64_t throttle_reasons = 0;  // NVML's bits
  std::vector<std::string>
      throttled_by;  // what of it slows the clock: "power cap", "thermal", ...; idle is no throttling
};

class Nvml {
 public:
  // `index` is the device's index as NVML counts, which is the driver's where CUDA_VISIBLE_DEVICES is unset.
  static Result<Nvml> open(int index);
  GpuState read() const;  // a figure that the device does not report stays 0

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
  void* device_ = nullptr;
};

// The names of the bits that slow a busy GPU down.
std::vector<std::string> throttle_names(uint64_t reasons);

}  // namespace nereid::gpu
