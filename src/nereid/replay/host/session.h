// A session over two workers of whatever kind: forked on the CPU, processes of their own on CUDA.
#pragma once

#include <functional>
#include <memory>

#include "nereid/replay/host/client.h"
#include "nereid/replay/host/memory_admission.h"
#include "nereid/replay/host/worker_process.h"

namespace nereid::replay {

// Gives a worker that plays `role` ("reference" or "candidate"): fresh for a candidate, with nothing loaded.
using WorkerMaker = std::function<Result<std::shared_ptr<Worker>>(const char* role, int threads)>;

// `memory`: the device's, of which the session has what it needs until it ends.
Result<std::unique_ptr<Session>> open_session(const trace::Trace& reference, const trace::Trace& candidate,
                                              const SessionOptions& options, const WorkerMaker& make,
                                              MemoryAdmission& memory, Deadline deadline);

}  // namespace nereid::replay
