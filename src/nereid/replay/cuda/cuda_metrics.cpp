#include "nereid/replay/cuda/cuda_metrics.h"

#include <array>

namespace nereid::replay::cuda {
namespace {

// Each file is made by compile_kernels.py.
constexpr uint64_t kSm80[] = {
#include "error_metrics_sm_80.inc"
};
constexpr uint64_t kSm90[] = {
#include "error_metrics_sm_90.inc"
};
constexpr uint64_t kSm100[] = {
#include "error_metrics_sm_100.inc"
};
constexpr uint64_t kSm120[] = {
#include "error_metrics_sm_120.inc"
};
constexpr uint64_t kPtx80[] = {
#include "error_metrics_compute_80.inc"
};

struct MetricsImage {
  int arch;
  const uint64_t* words;
};
constexpr MetricsImage kImages[] = {{80, kSm80}, {90, kSm90}, {100, kSm100}, {120, kSm120}};

// In the order of kernels::Kernel.
struct EntryPoint {
  const char* name;
  unsigned threads;
};
constexpr EntryPoint kEntryPoints[kernels::kKernels] = {
    {"nereid_scale", kernels::kThreads},
    {"nereid_own_error", kernels::kThreads},
    {"nereid_got_error", kernels::kThreads},
    {"nereid_both_errors", kernels::kThreads},
    {"nereid_tail", kernels::kThreads},
    {"nereid_close", kernels::kThreads},
    {"nereid_agree", kernels::kThreads},
    {"nereid_runs", kernels::kThreads},
    {"nereid_columns", kernels::kThreads},
    {"nereid_values", kernels::kValueThreads},
    {"nereid_all_runs", kernels::kThreads},
    {"nereid_all_columns", kernels::kThreads},
    {"nereid_all_values", kernels::kValueThreads},
    {"nereid_fold", kernels::kThreads},
};

// Machine code runs on GPUs of its own major version and a minor one as high or higher.
const uint64_t* image_for(int arch) {
  for (const auto& image : kImages)
    if (image.arch / 10 == arch / 10 && image.arch <= arch) return image.words;
  return kPtx80;
}

class CudaKernels final : public KernelLauncher {
 public:
  explicit CudaKernels(const CudaMachine& machine) : machine_(machine) {}
  ~CudaKernels() override {
    if (module_ != nullptr) machine_.driver().cuModuleUnload(module_);
  }

  Status load() {
    const auto& driver = machine_.driver();
    NEREID_CUDA(driver, cuModuleLoadData(&module_, image_for(machine_.facts().arch)));
    for (size_t k = 0; k < functions_.size(); ++k)
      NEREID_CUDA(driver, cuModuleGetFunction(&functions_[k], module_, kEntryPoints[k].name));
    return ok_status();
  }

  void launch(kernels::Kernel kernel, int64_t blocks, const void* parameters, size_t) const override {
    const auto k = static_cast<size_t>(kernel);
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(blocks), config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = kEntryPoints[k].threads, config.blockDimY = config.blockDimZ = 1;
    config.hStream = machine_.stream();
    void* arguments[] = {const_cast<void*>(parameters)};
    const CUresult code = machine_.driver().cuLaunchKernelEx(&config, functions_[k], arguments, nullptr);
    TORCH_CHECK(code == CUDA_SUCCESS, kEntryPoints[k].name, ": ", gpu::describe(machine_.driver(), code));
  }

 private:
  const CudaMachine& machine_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, kernels::kKernels> functions_{};
};

}  // namespace

Result<std::unique_ptr<FusedMetrics>> load_fused_metrics(const CudaMachine& machine) {
  auto launcher = std::make_unique<CudaKernels>(machine);
  NEREID_TRY_STATUS(launcher->load());
  return std::make_unique<FusedMetrics>(std::move(launcher));
}

}  // namespace nereid::replay::cuda
