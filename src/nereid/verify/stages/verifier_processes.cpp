#include "nereid/verify/stages/verifier_processes.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>

#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/thread_pool.h"
#include "nereid/gpu/driver.h"

namespace nereid::verify {

bool has_gpu() {
  std::error_code failure;
  return std::filesystem::exists("/dev/nvidiactl", failure) &&
         std::filesystem::exists("/dev/nvidia-uvm", failure);
}

Result<std::unique_ptr<VerifierProcesses>> VerifierProcesses::open(const VerifierProcessesOptions& options) {
  auto processes = std::make_unique<VerifierProcesses>();
  NEREID_TRY(const Installation installation, Installation::locate());
  tracer::TracerOptions tracing;
  tracing.installation = installation;
  tracing.workers = options.jobs;
  tracing.at_once = options.at_once;
  if (options.inductor) tracing.module = "nereid._inductor.inductor_tracer";
  NEREID_TRY(processes->tracer_, tracer::Tracer::start(tracing));
  // More sessions than these only take the GPU from each other.
  constexpr int kMaxOnGpu = 6;
  const bool gpu = options.device == replay::Device::kCuda;
  NEREID_TRY(processes->replay_,
             replay::Server::start({.one_author = options.one_author,
                                    .at_once = options.at_once,
                                    .cuda_sessions = gpu ? std::min(options.jobs, kMaxOnGpu) : 0}));
  if (gpu) NEREID_TRY_STATUS(processes->open_gpu(installation));
  if (!gpu && options.compile_for > 0) {
    processes->arch_ = options.compile_for;
    NEREID_TRY(processes->compiler_, tracer::KernelCompiler::start(
                                         {.installation = installation, .workers = (options.jobs + 1) / 2}));
    NEREID_TRY_STATUS(processes->compiler_->warm_up());
  }
  return processes;
}

VerifierBackends VerifierProcesses::backends() {
  return {
      .trace = [this](const tracer::TraceRequest& request,
                      Deadline deadline) { return tracer_->trace(request, deadline); },
      .replay = [this](const trace::Trace& reference, const trace::Trace& candidate,
                       const replay::SessionOptions& options,
                       Deadline deadline) { return replay_->begin(reference, candidate, options, deadline); },
      .analyze = [this](const trace::Trace& trace) { return analyze_trace(trace, kernels_); },
      .compile = [this](const trace::Trace& trace, Deadline deadline) { return compile(trace, deadline); },
      .triton_reads = [this](const trace::Kernel& kernel) { return triton_reads(kernel); },
      .isolation = [this](replay::Device device) { return isolation(device); },
  };
}

std::map<std::string, std::string> VerifierProcesses::isolation(replay::Device device) {
  std::map<std::string, std::string> standing = {{"replay", replay_->isolation(device)}};
  if (const auto tracer = tracer_->isolation(Deadline::after(0)); tracer.ok())
    standing["tracer"] = describe(*tracer);
  if (compiler_)
    if (const auto compiler = compiler_->isolation(); compiler.ok())
      standing["compiler"] = describe(*compiler);
  return standing;
}

Status VerifierProcesses::open_gpu(const Installation& installation) {
  NEREID_TRY(const auto* driver, gpu::Driver::open());
  NEREID_TRY(const auto facts, gpu::device_facts(*driver, 0));
  arch_ = facts.arch;
  shared_bytes_ = facts.shared_bytes_per_block;
  NEREID_TRY(compiler_, tracer::KernelCompiler::start({.installation = installation}));
  return compiler_->warm_up();
}

Result<bool> VerifierProcesses::triton_reads(const trace::Kernel& kernel) {
  constexpr int kAnyArch = 90;
  const std::lock_guard lock(reader_mutex_);
  if (!reader_) {
    NEREID_TRY(const Installation installation, Installation::locate());
    NEREID_TRY(reader_, tracer::KernelCompiler::start({.installation = installation}));
  }
  NEREID_TRY(const auto answer, reader_->compile(kernel, kAnyArch, Deadline::after(60)));
  return std::holds_alternative<tracer::CompiledKernel>(answer);
}

Result<CompiledKernels> VerifierProcesses::compile(const trace::Trace& trace, Deadline deadline) {
  if (!compiler_) return our_error("no GPU was opened to compile for");
  CompiledKernels compiled;
  Status trouble = ok_status();
  std::mutex mutex;
  const auto one = [&](int64_t index, int) {
    const trace::Kernel& kernel = trace.kernels[static_cast<size_t>(index)];
    const auto answer = compiler_->compile(kernel, arch_, deadline);
    const std::lock_guard lock(mutex);
    if (!answer.ok()) {
      trouble = answer.error();
    } else if (const auto* diagnostics = std::get_if<tracer::CompileDiagnostics>(&*answer)) {
      compiled.refused[kernel.hash] = diagnostics->message;
    } else if (const auto& code = std::get<tracer::CompiledKernel>(*answer); code.shared > shared_bytes_) {
      compiled.refused[kernel.hash] = fmt::format(
          "it needs {} bytes of shared memory, a block of this GPU has {}", code.shared, shared_bytes_);
    } else {
      compiled.kernels[kernel.hash] = to_json(code).dump();
    }
  };
  ThreadPool(static_cast<int>(std::min<size_t>(trace.kernels.size(), 32)) + 1)
      .parallel_for(static_cast<int64_t>(trace.kernels.size()), one);
  if (!trouble.ok()) return trouble.error();
  return compiled;
}

}  // namespace nereid::verify
