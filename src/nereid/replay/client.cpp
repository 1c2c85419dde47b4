#include "nereid/replay/client.h"

#include "nereid/base/installation.h"
#include "nereid/replay/session.h"

namespace nereid::replay {
namespace {

class CpuServer : public Server {
 public:
  explicit CpuServer(std::shared_ptr<ForkServer> workers) : workers_(std::move(workers)) {}

  Result<std::unique_ptr<Session>> begin(const trace::Trace& reference, const trace::Trace& candidate,
                                         const SessionOptions& options, Deadline deadline) override {
    const auto make = [&](const char* role, int threads) { return workers_->worker(role, threads); };
    return open_session(reference, candidate, options, make, deadline);
  }

 private:
  std::shared_ptr<ForkServer> workers_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options) {
  auto program = options.program;
  if (program.empty()) {
    NEREID_TRY(const auto installation, Installation::locate());
    program = installation.bin / "nereid-replay";
  }
  NEREID_TRY(auto workers, ForkServer::start(program, options.jail));
  return std::unique_ptr<Server>(std::make_unique<CpuServer>(std::move(workers)));
}

}  // namespace nereid::replay
