// Launches a trace's kernels on the GPU. A checked launch (`LaunchRequest::sanitize`) is waited for, so that
// a fault has a name.
#pragma once

#include <string>
#include <vector>

#include "nereid/replay/cuda/cuda_machine.h"

namespace nereid::replay::cuda {

class CudaLauncher final : public Launcher {
 public:
  CudaLauncher(CudaMachine& machine, const trace::Trace& trace) : machine_(machine), trace_(trace) {}

  std::vector<ttir::Parameter> parameters(trace::KernelId kernel) override;
  void launch(const LaunchRequest& request, std::vector<ttir::Finding>& findings,
              int64_t& finding_count) override;

 private:
  void check(const LaunchRequest& request, const trace::Kernel& kernel, std::vector<ttir::Finding>& findings,
             int64_t& finding_count);

  CudaMachine& machine_;
  const trace::Trace& trace_;
};

// What a fault of a kernel's says about it.
ttir::Finding finding_of_fault(const trace::Kernel& kernel, CUresult code, const std::string& error);

}  // namespace nereid::replay::cuda
