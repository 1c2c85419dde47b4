// The kernel launches of a plan, in order. Their parameters are packed once; a call replaces pointers alone.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nereid/python/cuda_driver.h"

namespace nereid::python {

// `value`, of which the kernel reads as many bytes as the parameter has (little-endian); with slot >= 0 it is
// the address in that slot + value.
struct KernelParameter {
  uint64_t value = 0;
  int64_t slot = -1;
};

struct KernelLaunch {
  CUfunction function = nullptr;
  uint32_t grid[3] = {1, 1, 1};  // thread blocks, each at least 1
  uint32_t threads = 1;          // of a block
  uint32_t shared_bytes = 0;     // dynamic shared memory of a block
  bool cooperative = false;      // all blocks are resident together, or the launch fails
  std::vector<KernelParameter> parameters;
};

// Immutable, so any number of threads may use one.
class LaunchSequence {
 public:
  LaunchSequence() = default;
  explicit LaunchSequence(const std::vector<KernelLaunch>& launches);

  size_t size() const { return launches_.size(); }

  // Queues all launches on the stream. The driver's first error ends it: what follows is not launched.
  // `pointers`: an address a slot.
  CUresult launch(const CudaDriver& driver, CUstream stream, const uint64_t* pointers) const;

  // An executable graph of the same launches, one after the other. The caller destroys it.
  CUresult instantiate(const CudaDriver& driver, const uint64_t* pointers, CUgraphExec* graph) const;

 private:
  struct Launch {
    CUfunction function;
    uint32_t grid[3], threads, shared_bytes;
    bool cooperative;
    size_t first;  // of its parameters among all
  };
  struct Patch {
    size_t parameter;
    uint32_t slot;
  };
  struct Packed {
    std::vector<uint64_t> values;
    std::vector<void*> addresses;  // of each value, as the driver takes them
  };

  const Packed& packed(const uint64_t* pointers) const;
  CUresult add_nodes(const CudaDriver& driver, const uint64_t* pointers, CUgraph graph) const;

  std::vector<Launch> launches_;
  std::vector<uint64_t> values_;
  std::vector<Patch> patches_;
};

}  // namespace nereid::python
