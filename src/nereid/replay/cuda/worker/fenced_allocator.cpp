#include "nereid/replay/cuda/worker/fenced_allocator.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

// Named by an inline function of the header that is overridden below, so never called: without this the program would
// need libcudart.so by itself, which lies in no folder that it is told of.
#pragma weak cudaMemGetInfo

namespace nereid::replay::cuda {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

class FencedAllocator final : public caching::CUDAAllocator {
 public:
  FencedAllocator(const Driver& driver, int device, const bool& fenced, const Placement& placement,
                  caching::CUDAAllocator* behind)
      : driver_(driver), device_(device), fenced_(fenced), placement_(placement), behind_(behind) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (!fenced_) return behind_->allocate(bytes);
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_));
    if (bytes == 0) return {nullptr, device};
    Result<Mapping> mapping =
        Mapping::create(driver_, device_, bytes, placement_, c10::cuda::getCurrentCUDAStream().stream());
    if (!mapping.ok() && mapping.error().message.find("OUT_OF_MEMORY") != std::string::npos) {
      behind_->emptyCache();  // what the caching allocator keeps for later is free memory to us
      mapping =
          Mapping::create(driver_, device_, bytes, placement_, c10::cuda::getCurrentCUDAStream().stream());
    }
    TORCH_CHECK(mapping.ok(), "fenced memory of ", bytes,
                " bytes: ", mapping.ok() ? "" : mapping.error().message);
    auto* data = reinterpret_cast<void*>(mapping->data());
    const std::lock_guard lock(mutex_);
    live_.emplace(data, *std::move(mapping));
    return {data, data, &release, device};
  }
  // The deleter of what either allocator gave.
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  std::vector<StraySlack> strayed() {
    const std::lock_guard lock(mutex_);
    for (const auto& [data, mapping] : live_) look_at(mapping);
    return std::exchange(strayed_, {});
  }
  int64_t mapped_bytes() {
    const std::lock_guard lock(mutex_);
    int64_t bytes = 0;
    for (const auto& [data, mapping] : live_) bytes += static_cast<int64_t>(mapping.layout().mapped);
    return bytes;
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    size_t free = 0, total = 0;
    TORCH_CHECK(driver_.cuMemGetInfo(&free, &total) == CUDA_SUCCESS, "cuMemGetInfo failed");
    return {free, total};
  }

  // All else is the caching allocator's business.
  void copy_data(void* to, const void* from, size_t bytes) const override {
    behind_->copy_data(to, from, bytes);
  }
  bool initialized() override { return behind_->initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { behind_->emptyCache(pool); }
  caching::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return behind_->getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override { behind_->resetAccumulatedStats(device); }
  void resetPeakStats(c10::DeviceIndex device) override { behind_->resetPeakStats(device); }
  void* raw_alloc(size_t bytes) override { return behind_->raw_alloc(bytes); }
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override {
    return behind_->raw_alloc_with_stream(bytes, stream);
  }
  void raw_delete(void* data) override { release(data); }
  void init(int device_count) override { behind_->init(device_count); }
  double getMemoryFraction(c10::DeviceIndex device) override { return behind_->getMemoryFraction(device); }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    behind_->setMemoryFraction(fraction, device);
  }
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device) override {
    return behind_->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { behind_->enable(value); }
  bool isEnabled() const override { return behind_->isEnabled(); }
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override { behind_->cacheInfo(device, largest); }
  void* getBaseAllocation(void* data, size_t* bytes) override {
    return behind_->getBaseAllocation(data, bytes);
  }
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (!is_fenced(data.get())) behind_->recordStream(data, stream);
  }
  caching::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    return behind_->snapshot(pool, traces);
  }
  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    behind_->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    behind_->endAllocateToPool(device, pool);
  }
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    behind_->releasePool(device, pool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return behind_->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> allocator) override {
    behind_->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use) override {
    behind_->setUseOnOOM(device, pool, use);
  }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    behind_->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return behind_->checkPoolLiveAllocations(device, pool, expected);
  }
  caching::ShareableHandle shareIpcHandle(void* data) override { return behind_->shareIpcHandle(data); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return behind_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return behind_->isHistoryEnabled(); }
  void recordHistory(bool enabled, caching::CreateContextFn recorder, size_t most,
                     caching::RecordContext when, bool clear, const std::vector<std::string>& skip) override {
    behind_->recordHistory(enabled, recorder, most, when, clear, skip);
  }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override {
    behind_->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker) override {
    behind_->attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override {
    behind_->enablePeerAccess(device, other);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                          cudaStream_t stream, bool peers) override {
    return behind_->memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
  }
  std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                              c10::MempoolId_t id) override {
    return behind_->getCheckpointState(device, id);
  }
  caching::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device,
                                                  std::shared_ptr<caching::AllocatorState> state) override {
    return behind_->setCheckpointPoolState(device, std::move(state));
  }
  std::string name() override { return behind_->name(); }

  static FencedAllocator* installed;

 private:
  static void release(void* data) {
    if (data != nullptr && !installed->unmap(data)) installed->behind_->raw_delete(data);
  }
  bool unmap(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(data);
    if (found == live_.end()) return false;
    // Kernels may still be using it: unlike the caching allocator we give the pages back at once.
    driver_.cuCtxSynchronize();
    look_at(found->second);
    live_.erase(found);
    return true;
  }
  bool is_fenced(void* data) {
    const std::lock_guard lock(mutex_);
    return live_.contains(data);
  }
  void look_at(const Mapping& mapping) {
    const Result<int64_t> strayed = mapping.check_slack();
    if (strayed.ok() && *strayed > 0)
      strayed_.push_back({mapping.data(), static_cast<int64_t>(mapping.bytes()), *strayed});
  }

  const Driver& driver_;
  const int device_;
  const bool& fenced_;
  const Placement& placement_;
  caching::CUDAAllocator* const behind_;
  std::mutex mutex_;
  std::map<void*, Mapping> live_;
  std::vector<StraySlack> strayed_;
};

FencedAllocator* FencedAllocator::installed = nullptr;

}  // namespace

void install_fenced_allocator(const Driver& driver, int device, const bool& fenced,
                              const Placement& placement) {
  NEREID_CHECK(FencedAllocator::installed == nullptr, "one fenced allocator in a process");
  // Never destroyed: tensors may outlive everything else in the process.
  FencedAllocator::installed = new FencedAllocator(driver, device, fenced, placement, caching::get());
  caching::allocator.store(FencedAllocator::installed);
}

std::vector<StraySlack> fenced_memory_strayed_into() {
  return FencedAllocator::installed == nullptr ? std::vector<StraySlack>{}
                                               : FencedAllocator::installed->strayed();
}

int64_t fenced_bytes_mapped() {
  return FencedAllocator::installed == nullptr ? 0 : FencedAllocator::installed->mapped_bytes();
}

}  // namespace nereid::replay::cuda
