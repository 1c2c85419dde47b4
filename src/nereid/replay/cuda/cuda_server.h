// The CUDA replay server: it never touches the GPU itself, and keeps processes that have. Making a context
// costs some hundred milliseconds, so a process plays one session after the other, until one leaves it
// broken.
//
// Requests on its control socket are those of the CPU's server (worker/roles/server.h): {"fork": role,
// "threads": n} with the worker's end of a socket takes a warmed process that has played no other role,
// {"end": pid} gives it back: it is kept where its session ended in order, killed where not. With "orderly"
// the answer does not wait for that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nereid/replay/message.h"
#include "nereid/sandbox/jail/jail.h"

namespace nereid::replay::cuda {

struct CudaServerOptions {
  int device = 0;
  int spare = 2;                       // processes kept warm: a reference's and a candidate's
  int most = 6;                        // at a time
  double patience = 1;                 // seconds that a process has to come to rest when its session is over
  bool jail = true;                    // false: its processes run unjailed (for developers)
  bool accept_weak_isolation = false;  // run even where the driver works only with too few
};

// Returns when the control socket closes. The first message on it is {"ready": true, "isolation": those that
// stand around its processes}, or {"error"}: why there is no GPU.
int run_cuda_server(int control, const CudaServerOptions& options);

// What a kept process runs: plays the sessions that `server` sends it, {"play": role} and a socket each, and
// answers
// {"idle": true} after each. Exits where a session lost the GPU's context. It is in its jail, whole, before
// it says that it is idle for the first time, and has heard nothing until then.
[[noreturn]] void run_cuda_process(int server, int device, const sandbox::Jail* jail);

}  // namespace nereid::replay::cuda
