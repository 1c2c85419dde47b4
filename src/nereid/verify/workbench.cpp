#include "nereid/verify/workbench.h"

#include <filesystem>

#include "nereid/base/installation.h"

namespace nereid::verify {

bool has_gpu() {
  std::error_code failure;
  return std::filesystem::exists("/dev/nvidiactl", failure) &&
         std::filesystem::exists("/dev/nvidia-uvm", failure);
}

Result<std::unique_ptr<Workbench>> Workbench::open(const WorkbenchOptions& options) {
  auto bench = std::make_unique<Workbench>();
  NEREID_TRY(const Installation installation, Installation::locate());
  tracer::TracerOptions tracing;
  tracing.installation = installation;
  tracing.workers = options.jobs;
  NEREID_TRY(bench->tracer_, tracer::Tracer::start(tracing));
  NEREID_TRY(bench->replay_, replay::Server::start({}));
  return bench;
}

Equipment Workbench::equipment() {
  return {
      .trace = [this](const tracer::TraceRequest& request,
                      Deadline deadline) { return tracer_->trace(request, deadline); },
      .replay = [this](const trace::Trace& reference, const trace::Trace& candidate,
                       const replay::SessionOptions& options,
                       Deadline deadline) { return replay_->begin(reference, candidate, options, deadline); },
      .facts = [this](const trace::Trace& trace) { return facts_of(trace, kernels_); },
  };
}

}  // namespace nereid::verify
