#include "nereid/lm/decoder/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <charconv>
#include <filesystem>

namespace nereid::lm {
namespace {

// libtorch_cuda.so in the folder of the libtorch_cpu.so that we run on; its constructors register its
// kernels.
Status open_cuda_half() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0)
    return our_error("libtorch_cpu.so is not found in this process");
  const auto library = std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return our_error("{}: {}", library.string(), ::dlerror());
  return ok_status();
}

bool driver_is_there() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) ::dlclose(driver);
  return driver != nullptr;
}

}  // namespace

Result<c10::Device> open_device(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  int index = 0;
  if (name.starts_with("cuda:")) {
    const auto [end, failure] = std::from_chars(name.data() + 5, name.data() + name.size(), index);
    if (failure != std::errc() || end != name.data() + name.size() || index < 0)
      return input_error("device: expected cuda:N, got '{}'", name);
  } else if (name != "cuda" && name != "auto") {
    return input_error("device: expected auto, cpu, cuda or cuda:N, got '{}'", name);
  }
  if (!driver_is_there()) {
    if (name == "auto") return c10::Device(c10::kCPU);
    return input_error("device {}: expected a GPU, but NVIDIA's driver (libcuda.so.1) is not on this machine",
                       name);
  }
  NEREID_TRY_STATUS(open_cuda_half());
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (name == "auto" && devices == 0) return c10::Device(c10::kCPU);
  if (index >= devices) return input_error("device {}: expected one of {} GPUs", name, devices);
  at::globalContext().lazyInitDevice(c10::kCUDA);
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  c10::impl::getDeviceGuardImpl(c10::kCUDA)
      ->setDevice(device);  // of this thread: streams and contexts are its
  return device;
}

at::Tensor sent_to(const at::Tensor& on_host, at::Device device) {
  if (!device.is_cuda())
    return on_host.to(device, on_host.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  at::Tensor pinned = at::empty(on_host.sizes(), on_host.options().pinned_memory(true));
  return pinned.copy_(on_host).to(device, /*non_blocking=*/true);
}

at::Tensor sent_to(const std::vector<int32_t>& numbers, at::Device device) {
  return sent_to(
      at::from_blob(const_cast<int32_t*>(numbers.data()), {static_cast<int64_t>(numbers.size())}, at::kInt),
      device);
}

}  // namespace nereid::lm
