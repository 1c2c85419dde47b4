// Times many programs side by side as their users call them: a warmed Python process that forks for each
// (python/nereid/_timing/call_server.py). Compiling goes on in parallel; while one is timed, no other process
// uses the GPU, replays of this process included (replay/host/gpu_gate.h). Programs with a candidate's
// kernels have a server of their own, whose children enter the jail of CUDA's workers
// (sandbox/jail/cuda_isolation.h) before any machine code is there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/result.h"

namespace nereid::search {

struct CallRequest {
  std::string program{};                       // text of program_text
  std::map<std::string, std::string> files{};  // in the same folder: HASH.json for each of its kernels
  std::map<std::string, int> kernels{};        // by hash: how many constants it has
  std::vector<std::string> modes{};  // of "eager", "graph", "compile", "max-autotune", in this order
  double seconds = 2;                // of sampling, each mode
  double patience = 900;  // seconds of one mode, waiting for the GPU not counted; then it is killed
  int threads = 0;        // that compile one program; 0: as many as PyTorch chooses
  bool direct = false;    // behind a guard, with direct launches, as the compiler's files are called
};

// Thread-safe.
class CallServer {
 public:
  enum class Kind {
    kEager,      // PyTorch alone
    kCompile,    // torch.compile too: its imports take seconds
    kCandidates  // programs with kernels, in a jail
  };
  // Nothing is started before it is needed. `device`: of all its requests.
  CallServer(Installation installation, Kind kind, std::string device)
      : installation_(std::move(installation)), kind_(kind), device_(std::move(device)) {}
  // Ends the process, and with it all children.
  ~CallServer();

  // `take` is called with each mode's answer as soon as it is there: {"call_ms": ...} or {"declined": why}.
  // A mode that takes too long or kills its process is declined so; the modes after it get a process of their
  // own. An Error: an interrupt, the deadline, or a server that cannot be started; where there is no jail
  // for candidates, all modes are declined.
  Status run(const CallRequest& request, Deadline deadline,
             const std::function<void(const std::string& mode, const nlohmann::json& answer)>& take);

 private:
  // Sends an order to the process, which is started where there is none. False where there are to be no
  // children.
  Result<bool> order(nlohmann::json request, const std::vector<int>& descriptors);
  Status start();
  Result<nlohmann::json> jails() const;
  void stop();

  const Installation installation_;
  const Kind kind_;
  const std::string device_;
  std::mutex mutex_;
  std::string declined_;  // why there are no children
  pid_t process_ = 0;
  KilledAtExit killed_at_exit_;
  Fd control_;
  std::optional<TemporaryFolder> caches_;  // Triton's and Inductor's: what one program compiled, all can use
};

}  // namespace nereid::search
