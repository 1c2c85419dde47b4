#include "nereid/replay/cuda/fenced_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>

#include <utility>

namespace nereid::replay::cuda {

// What a DataPtr's deleter gets.
struct FencedMemory::Block {
  FencedMemory& memory;
  CUdeviceptr data;
};

c10::DataPtr FencedMemory::allocate(int64_t bytes, CUstream stream) {
  const auto create = [&] {
    return gpu::Mapping::create(driver_, device_, static_cast<size_t>(bytes), placement, stream);
  };
  Result<gpu::Mapping> mapping = create();
  if (!mapping.ok() && mapping.error().message.find("OUT_OF_MEMORY") != std::string::npos) {
    c10::cuda::CUDACachingAllocator::emptyCache();  // what the caching allocator keeps for later is free
                                                    // memory to us
    mapping = create();
  }
  TORCH_CHECK_WITH(OutOfMemoryError, mapping.ok(), "fenced memory of ", bytes,
                   " bytes: ", mapping.ok() ? "" : mapping.error().message);
  const CUdeviceptr data = mapping->data();
  const std::lock_guard lock(mutex_);
  live_.emplace(data, *std::move(mapping));
  return {reinterpret_cast<void*>(data), new Block{*this, data}, &release,
          c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_))};
}

void FencedMemory::release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  FencedMemory& memory = block->memory;
  // Kernels may still be using it: unlike the caching allocator this gives the pages back at once.
  memory.driver_.cuCtxSynchronize();
  const std::lock_guard lock(memory.mutex_);
  const auto found = memory.live_.find(block->data);
  memory.look_at(found->second);
  memory.live_.erase(found);
}

void FencedMemory::look_at(const gpu::Mapping& mapping) {
  const Result<int64_t> strayed = mapping.check_slack();
  if (!strayed.ok() || *strayed == 0) return;
  for (const Stray& known : strayed_)
    if (known.data == mapping.data()) return;
  strayed_.push_back({mapping.data(), static_cast<int64_t>(mapping.bytes()), *strayed});
}

std::vector<Stray> FencedMemory::strayed() {
  const std::lock_guard lock(mutex_);
  for (const auto& [data, mapping] : live_) look_at(mapping);
  return std::exchange(strayed_, {});
}

int64_t FencedMemory::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [data, mapping] : live_) bytes += static_cast<int64_t>(mapping.layout().mapped);
  return bytes;
}

}  // namespace nereid::replay::cuda
