#include "nereid/replay/cuda/cuda_machine.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <thread>

#include "nereid/replay/cuda/cuda_launcher.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay::cuda {
namespace {

// A failure of ours, in the exceptions that the replay's code speaks.
template <typename T>
T or_throw(Result<T> result) {
  TORCH_CHECK(result.ok(), result.ok() ? "" : result.error().message);
  return std::move(result).value();
}

at::Tensor tensor_over(std::shared_ptr<gpu::Mapping> mapping, int device) {
  auto* data = reinterpret_cast<void*>(mapping->data());
  const auto bytes = static_cast<int64_t>(mapping->bytes());
  const c10::Device where(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
  return at::for_blob(data, {bytes})
      .deleter([mapping = std::move(mapping)](void*) mutable { mapping.reset(); })
      .options(at::TensorOptions().dtype(at::kByte).device(where))
      .target_device(where)
      .make_tensor();
}

}  // namespace

CudaMachine::CudaMachine(const gpu::Driver& driver, int device, gpu::DeviceFacts facts)
    : driver_(driver),
      device_(device),
      facts_(std::move(facts)),
      fenced_memory_(new FencedMemory(driver, device)) {}  // never freed: tensors may outlive the machine

Result<std::unique_ptr<CudaMachine>> CudaMachine::create(int device) {
  NEREID_TRY(const gpu::Driver* driver, gpu::Driver::open());
  NEREID_TRY(gpu::DeviceFacts facts, gpu::device_facts(*driver, device));
  NEREID_TRY_STATUS(gpu::use_primary_context(*driver, device));
  std::unique_ptr<CudaMachine> machine(new CudaMachine(*driver, device, std::move(facts)));
  try {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    // Graphs cannot be captured on the default stream; so nothing runs there.
    c10::cuda::setCurrentCUDAStream(
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, static_cast<c10::DeviceIndex>(device)));
  } catch (const std::exception& error) {
    return our_error("the CUDA half of libtorch does not start: {}", error.what());
  }
  return machine;
}

CUstream CudaMachine::stream() const {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_)).stream();
}

c10::Device CudaMachine::device(trace::Device device) const {
  return device == trace::Device::kCpu ? c10::Device(c10::kCPU)
                                       : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_));
}

c10::Storage CudaMachine::allocate(int64_t bytes, trace::Device device) {
  if (fenced && device == trace::Device::kCuda)
    return {c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
            fenced_memory_->allocate(bytes, stream()),
            /*allocator=*/nullptr, /*resizable=*/false};
  c10::Allocator* allocator = device == trace::Device::kCpu
                                  ? c10::GetAllocator(c10::kCPU)
                                  : static_cast<c10::Allocator*>(c10::cuda::CUDACachingAllocator::get());
  return {c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
          allocator->allocate(static_cast<size_t>(bytes)), allocator, /*resizable=*/false};
}

void CudaMachine::add_kernel(const std::string& hash, gpu::CompiledKernel image) {
  kernels_.try_emplace(hash, Kernel{std::move(image), nullptr});
}

void CudaMachine::forget_kernels() {
  wait(Deadline::never());
  kernels_.clear();
}

const gpu::LoadedKernel& CudaMachine::kernel(const std::string& hash, const std::string& name) {
  const auto found = kernels_.find(hash);
  if (found == kernels_.end())
    throw Failed(Failure::Kind::kUnsupported,
                 fmt::format("kernel {} was not compiled for this device", name));
  Kernel& kernel = found->second;
  if (kernel.loaded == nullptr) {
    auto loaded = gpu::LoadedKernel::load(driver_, device_, kernel.image);
    if (!loaded.ok() && loaded.error().blame == Blame::kInput)
      throw Failed(Failure::Kind::kUnsupported, loaded.error().message);
    kernel.loaded = std::make_unique<gpu::LoadedKernel>(or_throw(std::move(loaded)));
  }
  return *kernel.loaded;
}

std::unique_ptr<Launcher> CudaMachine::load_kernels(const trace::Trace& trace) {
  return std::make_unique<CudaLauncher>(*this, trace);
}

SharedBlock CudaMachine::share(int64_t bytes) {
  auto mapping = std::make_shared<gpu::Mapping>(or_throw(
      gpu::Mapping::create(driver_, device_, static_cast<size_t>(bytes), gpu::Placement::kAtEnd, stream())));
  Fd fd = or_throw(mapping->export_fd());
  return {tensor_over(std::move(mapping), device_), std::move(fd)};
}

SharedBlock CudaMachine::open(const Fd& fd, int64_t bytes, bool to_write) {
  // The driver refuses to map more than the other process made, and what it made cannot shrink.
  const auto import = [&](gpu::Access access) {
    return gpu::Mapping::import(driver_, device_, fd, static_cast<size_t>(bytes), gpu::Placement::kAtEnd,
                                access);
  };
  Result<gpu::Mapping> mapping = import(to_write ? gpu::Access::kReadWrite : gpu::Access::kRead);
  if (!mapping.ok() && mapping.error().message.starts_with("cuMemSetAccess"))
    mapping = import(gpu::Access::kReadWrite);
  return {tensor_over(std::make_shared<gpu::Mapping>(or_throw(std::move(mapping))), device_), Fd()};
}

CUresult CudaMachine::wait(Deadline deadline) const {
  const CUstream stream = this->stream();
  for (int polls = 0;; ++polls) {
    const CUresult code = driver_.cuStreamQuery(stream);
    if (code != CUDA_ERROR_NOT_READY) return code;
    if (deadline.passed()) return CUDA_ERROR_NOT_READY;
    // Most waits are short: a while of asking, then of sleeping.
    if (polls > 2000) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void CudaMachine::trim() {
  constexpr int64_t kLargeAllocation = int64_t{256} << 20;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device_));
  if (stats.reserved_bytes[0].current - stats.allocated_bytes[0].current > kLargeAllocation)
    c10::cuda::CUDACachingAllocator::emptyCache();
}

void CudaMachine::synchronize() {
  const CUresult code = wait(Deadline::never());
  if (code == CUDA_SUCCESS) return;
  mark_lost();
  if (gpu::is_kernel_fault(code))
    throw Failed(Failure::Kind::kCrashed, fmt::format("a kernel faulted: {}", gpu::describe(driver_, code)));
  TORCH_CHECK(false, "the GPU failed: ", gpu::describe(driver_, code));
}

}  // namespace nereid::replay::cuda
