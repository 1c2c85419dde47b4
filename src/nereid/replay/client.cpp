#include "nereid/replay/client.h"

#include <mutex>

#include "nereid/base/installation.h"
#include "nereid/replay/session.h"

namespace nereid::replay {
namespace {

class WorkerServer : public Server {
 public:
  WorkerServer(std::string program, bool jail, std::shared_ptr<ForkServer> workers, std::string cuda_program)
      : cpu_{std::move(program), jail, std::move(workers)}, cuda_{std::move(cuda_program), true, nullptr} {}

  Result<std::unique_ptr<Session>> begin(const trace::Trace& reference, const trace::Trace& candidate,
                                         const SessionOptions& options, Deadline deadline) override {
    if (options.device == Device::kCuda) {
      NEREID_TRY(const auto cuda, running(cuda_));  // keeps processes of its own warm
      const auto make = [&](const char* role, int threads) { return cuda->fork(role, threads); };
      return open_session(reference, candidate, options, make, deadline);
    }
    NEREID_TRY(const auto cpu, running(cpu_));
    const auto make = [&](const char* role, int threads) { return cpu->worker(role, threads); };
    return open_session(reference, candidate, options, make, deadline);
  }

 private:
  struct Workers {
    const std::string program;
    const bool jail;
    std::shared_ptr<ForkServer> server;  // null until it is first asked for
  };

  // One that died is started again.
  Result<std::shared_ptr<ForkServer>> running(Workers& workers) {
    const std::lock_guard lock(mutex_);
    if (workers.server == nullptr || workers.server->lost()) {
      NEREID_TRY(workers.server, ForkServer::start(workers.program, workers.jail));
    }
    return workers.server;
  }

  std::mutex mutex_;
  Workers cpu_, cuda_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options) {
  const auto beside = [](const std::string& program, const char* name) -> Result<std::string> {
    if (!program.empty()) return program;
    NEREID_TRY(const auto installation, Installation::locate());
    return (installation.bin / name).string();
  };
  NEREID_TRY(const auto program, beside(options.program, "nereid-replay"));
  NEREID_TRY(auto cuda_program, beside(options.cuda_program, "nereid-replay-cuda"));
  NEREID_TRY(auto workers, ForkServer::start(program, options.jail));
  return std::unique_ptr<Server>(
      std::make_unique<WorkerServer>(program, options.jail, std::move(workers), std::move(cuda_program)));
}

}  // namespace nereid::replay
