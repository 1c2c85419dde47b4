// What the GPU was doing while it was timed: clocks, temperature, power and throttling, from NVML (opened at
// run time).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // The one that this process's CUDA calls device `index`, whatever CUDA_VISIBLE_DEVICES says: numbers or
  // UUIDs.
  static Result<Nvml> open_visible(int index);
  GpuState read() const;  // a figure that the device does not report stays 0
  // The share of NVML's last sample period (at most a second) in which a kernel ran, 0 to 1; none where the
  // device does not report it.
  std::optional<double> utilization() const;

 private:
  struct Library;
  static Result<std::shared_ptr<const Library>> load();
  std::shared_ptr<const Library> library_;
  void* device_ = nullptr;
};

// The names of the bits that slow a busy GPU down.
std::vector<std::string> throttle_names(uint64_t reasons);

}  // namespace nereid::gpu
