// The storages of a fenced replay: each in a mapping of its own, all of them watched.
#pragma once

#include <c10/core/Allocator.h>

#include <map>
#include <mutex>
#include <vector>

#include "nereid/gpu/mapping.h"

namespace nereid::replay::cuda {

// Memory whose slack was written to.
struct Stray {
  CUdeviceptr data = 0;
  int64_t bytes = 0, strayed = 0;
};

// Lives as long as the process: tensors may hold what it gave.
class FencedMemory {
 public:
  FencedMemory(const gpu::Driver& driver, int device) : driver_(driver), device_(device) {}

  // On this side of its pages lies what is allocated next: overruns fault, or underruns.
  gpu::Placement placement = gpu::Placement::kAtEnd;

  // Throws c10::Error where there is no memory left. `stream` is the one that uses it.
  c10::DataPtr allocate(int64_t bytes, CUstream stream);

  // Live memory that was strayed into since the last question, and what was when it was freed. Synchronous.
  std::vector<Stray> strayed();

  int64_t mapped_bytes() const;

 private:
  struct Block;
  static void release(void* block);
  void look_at(const gpu::Mapping& mapping);

  const gpu::Driver& driver_;
  const int device_;
  mutable std::mutex mutex_;
  std::map<CUdeviceptr, gpu::Mapping> live_;
  std::vector<Stray> strayed_;
};

}  // namespace nereid::replay::cuda
