// The pipeline's real backends: the tracer's and the replay's processes, and the kernels read so far.
#pragma once

#include <memory>
#include <mutex>

#include "nereid/base/result.h"
#include "nereid/replay/host/client.h"
#include "nereid/tracer/kernel_compiler.h"
#include "nereid/tracer/tracer.h"
#include "nereid/verify/analysis/kernel_library.h"
#include "nereid/verify/stages/pipeline.h"

namespace nereid::verify {

struct VerifierProcessesOptions {
  int jobs = 1;  // pairs judged at the same time
  bool at_once =
      true;  // false: the processes start with their first request, for a caller that may have none
  replay::Device device = replay::Device::kCpu;
  // All candidates are: they share processes that others' do not (tracer::Tracer::trace_several,
  // replay::ServerOptions). A verdict is then as good as it would be if one author had written them all into
  // one file.
  bool one_author = false;
  bool inductor = false;  // many candidates are Inductor's: what they import is imported once
  int compile_for = 0;    // of a CPU's processes: the architecture that kernels are compiled for; 0: none are
};

class VerifierProcesses {
 public:
  // Starts both servers; returns before they are warm. When it goes, so do all their processes.
  static Result<std::unique_ptr<VerifierProcesses>> open(const VerifierProcessesOptions& options);

  VerifierBackends backends();  // refers to this processes
  tracer::Tracer& tracer() { return *tracer_; }

 private:
  Status open_gpu(const Installation& installation);
  Result<CompiledKernels> compile(const trace::Trace& trace, Deadline deadline);
  Result<bool> triton_reads(const trace::Kernel& kernel);
  std::map<std::string, std::string> isolation(replay::Device device);

  std::unique_ptr<tracer::Tracer> tracer_;
  std::unique_ptr<replay::Server> replay_;
  std::unique_ptr<tracer::KernelCompiler> compiler_;  // of CUDA, or for a GPU's clock
  std::unique_ptr<tracer::KernelCompiler> reader_;    // started when a kernel's text cannot be read
  std::mutex reader_mutex_;
  int arch_ = 0;                      // of the GPU: 90
  int64_t shared_bytes_ = INT64_MAX;  // that a block of it can have
  KernelLibrary kernels_;
};

// Whether this machine has a GPU that a CUDA replay could use.
bool has_gpu();

}  // namespace nereid::verify
