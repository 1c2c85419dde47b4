#include "nereid/lm/engine/cuda/cuda_device.h"

#include <ATen/ops/empty.h>
#include <dlfcn.h>

#include <bit>
#include <stdexcept>

#include "nereid/gpu/driver.h"
#include "nereid/gpu/kernel.h"
#include "nereid/lm/engine/cuda/torch_cuda.h"

namespace nereid::lm {
namespace {

constexpr size_t kDescribedRank = 2;  // a descriptor's shape and strides are parameters after it

class CudaLauncher : public Launcher {
 public:
  CudaLauncher(const gpu::Driver& driver, const TorchCuda& torch, int device, int arch)
      : driver_(driver), torch_(torch), device_(device), arch_(arch) {}

  int arch() const override { return arch_; }

  Result<size_t> load(std::vector<BuiltKernel> kernels) override {
    const size_t first = kernels_.size();
    for (const auto& kernel : kernels) {
      NEREID_TRY(auto loaded, gpu::LoadedKernel::load(driver_, device_, kernel.image));
      if (loaded.global_scratch_bytes({1, 1, 1}) != 0 || loaded.profile_scratch_bytes({1, 1, 1}) != 0)
        return our_error("kernel {}: expected one without scratch memory", kernel.image.name);
      kernels_.push_back(std::move(loaded));
    }
    return first;
  }

  void launch(size_t kernel, const std::array<int64_t, 3>& grid,
              const std::vector<KernelArgument>& arguments) override {
    const auto& types = kernels_[kernel].image().params;
    std::vector<gpu::Argument> packed;
    size_t parameter = 0;  // of types
    for (const auto& argument : arguments) {
      const bool described = parameter < types.size() && types[parameter].starts_with("!tt.tensordesc");
      parameter += described ? 1 + 2 * kDescribedRank : 1;
      if (const auto* tensor = std::get_if<at::Tensor>(&argument)) {
        NEREID_CHECK(tensor->is_contiguous(), "contiguous tensors");
        const auto address = reinterpret_cast<CUdeviceptr>(tensor->data_ptr());
        NEREID_CHECK(address % 16 == 0, "tensors at 16 bytes, as kernels assume; got one at {:#x}", address);
        if (!described) {
          packed.emplace_back(address);
          continue;
        }
        const int64_t rows = tensor->size(0), columns = rows == 0 ? 0 : tensor->numel() / rows;
        packed.emplace_back(
            gpu::Descriptor{.base = address, .shape = {rows, columns}, .strides = {columns, 1}});
      } else if (const auto* number = std::get_if<int32_t>(&argument)) {
        packed.emplace_back(gpu::Scalar{static_cast<uint32_t>(*number)});
      } else if (const auto* large = std::get_if<int64_t>(&argument)) {
        packed.emplace_back(gpu::Scalar{static_cast<uint64_t>(*large)});
      } else {
        packed.emplace_back(gpu::Scalar{std::bit_cast<uint32_t>(std::get<float>(argument))});
      }
    }
    const auto outcome =
        kernels_[kernel].launch(grid, packed, {}, static_cast<CUstream>(torch_.current_stream()));
    if (!outcome.ok()) throw std::runtime_error(outcome.error().message);
    if (!outcome->ok())
      throw std::runtime_error(fmt::format("kernel {}: {}", kernels_[kernel].image().name, outcome->error));
  }

 private:
  const gpu::Driver& driver_;
  const TorchCuda& torch_;
  int device_, arch_;
  std::vector<gpu::LoadedKernel> kernels_;
};

class Graph : public Recorded {
 public:
  Graph(const TorchCuda& torch, void* recorded) : torch_(torch), recorded_(recorded) {}
  ~Graph() override { torch_.forget(recorded_); }
  void replay() override { torch_.replay(recorded_); }

 private:
  const TorchCuda& torch_;
  void* recorded_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(const gpu::Driver& driver, const TorchCuda& torch, at::Device device, int arch,
             Installation installation, bool own_kernels)
      : driver_(driver),
        torch_(torch),
        launcher_(driver, torch, device.index(), arch),
        installation_(std::move(installation)),
        own_kernels_(own_kernels) {}

  std::unique_ptr<Recorded> record(const std::function<void()>& work) override {
    const auto call = [](void* argument) { (*static_cast<const std::function<void()>*>(argument))(); };
    return std::make_unique<Graph>(torch_, torch_.record(call, const_cast<std::function<void()>*>(&work)));
  }

  Result<std::unique_ptr<FusedModel>> fused(const lm::Config& config, int64_t block_size) override {
    if (!own_kernels_ || !FusedModel::takes(config)) return std::unique_ptr<FusedModel>();
    return FusedModel::create(config, block_size, launcher_, installation_);
  }

  Launcher* launcher() override { return own_kernels_ ? &launcher_ : nullptr; }

  int64_t free_bytes() const override {
    size_t free = 0, total = 0;
    if (driver_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return 0;
    return static_cast<int64_t>(free);
  }

 private:
  const gpu::Driver& driver_;
  const TorchCuda& torch_;
  CudaLauncher launcher_;
  Installation installation_;
  bool own_kernels_;
};

Result<const TorchCuda*> open_plugin(const Installation& installation) {
  const auto path = installation.bin / "libnereid_torch_cuda.so";
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return our_error("{}: {}", path.string(), ::dlerror());
  const auto get = reinterpret_cast<GetTorchCuda>(::dlsym(library, kGetTorchCuda));
  if (get == nullptr) return our_error("{}: expected a function {}", path.string(), kGetTorchCuda);
  return get();
}

}  // namespace

Result<std::unique_ptr<Device>> open_engine_device(at::Device device, const Installation& installation,
                                                   bool own_kernels) {
  if (device.is_cpu())
    return own_kernels ? std::unique_ptr<Device>(std::make_unique<HostDevice>()) : std::make_unique<Device>();
  NEREID_TRY(const gpu::Driver* driver, gpu::Driver::open());
  NEREID_TRY(const TorchCuda* torch, open_plugin(installation));
  (void)at::empty({1}, at::TensorOptions(device));  // libtorch's context becomes this thread's
  NEREID_TRY(const auto facts, gpu::device_facts(*driver, device.index()));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(*driver, *torch, device, facts.arch, installation, own_kernels));
}

}  // namespace nereid::lm
