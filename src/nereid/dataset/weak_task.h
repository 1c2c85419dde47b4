// Tasks that prove little: outputs that are one number everywhere, or the same whatever goes in, as replays
// on the task's own inputs show.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"
#include "nereid/verify/stages/pipeline.h"
#include "nereid/verify/stages/verifier_processes.h"

namespace nereid::dataset {

// Why the traced reference is such a task; empty where it is not. It is replayed against itself: three times,
// and where it seems weak up to twelve, in three quarters of which it must be. An Error: it cannot be run
// here.
Result<std::string> why_weak(const verify::VerifierBackends& backends, const trace::Trace& reference,
                             uint64_t seed);

struct Checked {
  std::string weak{};     // as above
  std::string trouble{};  // why that is unknown: it could not be traced, or does not fit this machine
};
// Of each of these tasks' sources, traced together. `bench` was opened for one author. An Error is a fault of
// ours, or an interrupt.
Result<std::vector<Checked>> check_tasks(verify::VerifierProcesses& processes,
                                         const std::vector<std::string>& sources, uint64_t seed);

}  // namespace nereid::dataset
