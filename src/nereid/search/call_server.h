// Times PyTorch's own ways for many programs side by side: a warmed Python process that forks for each
// (python/nereid/call_server.py). Compiling goes on in parallel; while one is timed, nobody else uses the
// GPU, replays of this process included (replay/gpu_gate.h).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/installation.h"
#include "nereid/base/result.h"

namespace nereid::search {

struct CallRequest {
  std::string program{};            // text of program_text
  std::vector<std::string> ways{};  // of "eager", "graph", "compile", "max-autotune", in this order
  std::string device = "cuda";
  double seconds = 2;     // of sampling, each way
  double patience = 900;  // seconds of one way, waiting for the GPU not counted; then it is killed
  int threads = 0;        // that compile one program; 0: as many as PyTorch chooses
};

// Thread-safe.
class CallServer {
 public:
  // Nothing is started before it is needed. `compile`: whether programs will be compiled; the imports for
  // that take seconds.
  CallServer(Installation installation, bool compile)
      : installation_(std::move(installation)), compile_(compile) {}
  // Ends the process, and with it all children.
  ~CallServer();

  // `take` is called with each way's answer as soon as it is there: {"call_ms": ...} or {"declined": why}.
  // A way that takes too long or kills its process is declined so; the ways after it get a process of their
  // own. An Error: an interrupt, the deadline, or a server that cannot be started.
  Status run(const CallRequest& request, Deadline deadline,
             const std::function<void(const std::string& way, const nlohmann::json& answer)>& take);

 private:
  // Sends an order to the process, which is started where there is none.
  Status order(nlohmann::json request, const std::vector<int>& descriptors);
  Status start();
  void stop();

  const Installation installation_;
  const bool compile_;
  std::mutex mutex_;
  pid_t process_ = 0;
  Fd control_;
  std::optional<TemporaryFolder> caches_;  // Triton's and Inductor's: what one program compiled, all can use
};

}  // namespace nereid::search
