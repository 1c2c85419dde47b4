#include "nereid/replay/client.h"

#include <mutex>

#include "nereid/base/installation.h"
#include "nereid/replay/session.h"

namespace nereid::replay {
namespace {

class WorkerServer : public Server {
 public:
  WorkerServer(std::shared_ptr<ForkServer> workers, std::string cuda_program)
      : workers_(std::move(workers)), cuda_program_(std::move(cuda_program)) {}

  Result<std::unique_ptr<Session>> begin(const trace::Trace& reference, const trace::Trace& candidate,
                                         const SessionOptions& options, Deadline deadline) override {
    if (options.device == Device::kCuda) {
      NEREID_TRY(const auto cuda, cuda_workers());  // keeps processes of its own warm
      const auto make = [&](const char* role, int threads) { return cuda->fork(role, threads); };
      return open_session(reference, candidate, options, make, deadline);
    }
    const auto make = [&](const char* role, int threads) { return workers_->worker(role, threads); };
    return open_session(reference, candidate, options, make, deadline);
  }

 private:
  Result<std::shared_ptr<ForkServer>> cuda_workers() {
    const std::lock_guard lock(mutex_);
    if (cuda_workers_ == nullptr) {
      NEREID_TRY(cuda_workers_, ForkServer::start(cuda_program_, /*jail=*/true));
    }
    return cuda_workers_;
  }

  std::shared_ptr<ForkServer> workers_;
  const std::string cuda_program_;
  std::mutex mutex_;
  std::shared_ptr<ForkServer> cuda_workers_;
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
  return std::unique_ptr<Server>(std::make_unique<WorkerServer>(std::move(workers), std::move(cuda_program)));
}

}  // namespace nereid::replay
