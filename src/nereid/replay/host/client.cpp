#include "nereid/replay/host/client.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/replay/host/session.h"

namespace nereid::replay {
namespace {

// How many sessions may hold the GPU's processes.
class Slots : public std::enable_shared_from_this<Slots> {
 public:
  explicit Slots(int free) : free_(free) {}

  // Free again when what this gives is gone.
  Result<std::shared_ptr<void>> take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (free_ == 0) {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      if (deadline.passed()) return our_error("no turn on the GPU came within the deadline");
      freed_.wait_for(lock, std::chrono::milliseconds(100));
    }
    --free_;
    return std::shared_ptr<void>(this, [self = shared_from_this()](void*) {
      {
        const std::lock_guard back(self->mutex_);
        ++self->free_;
      }
      self->freed_.notify_one();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
};

class WorkerServer : public Server {
 public:
  // `options` with the programs found.
  explicit WorkerServer(const ServerOptions& options)
      : cpu_({.program = options.program, .jail = options.jail, .keep_warm = true}, options),
        cuda_({.program = options.cuda_program,
               .jail = options.jail,
               .more = {"--sessions", std::to_string(std::max(1, options.cuda_sessions))}},
              options),
        one_author_(options.one_author),
        slots_(std::make_shared<Slots>(std::max(1, options.cuda_sessions))) {}

  // The CPU's workers are ready afterwards, if `at_once`; those of a GPU are made in the background.
  Status start(const ServerOptions& options) {
    if (options.at_once) {
      NEREID_TRY([[maybe_unused]] const auto cpu, cpu_.running());
    }
    if (options.cuda_sessions > 0)
      starting_ = std::async(std::launch::async,
                             [this] { (void)cuda_.running(); });  // a later call reports the failure
    return ok_status();
  }
  ~WorkerServer() override {
    if (starting_.valid()) starting_.wait();
    ForkServer::leave(cpu_.server);
  }

  Result<std::unique_ptr<Session>> begin(const trace::Trace& reference, const trace::Trace& candidate,
                                         const SessionOptions& options, Deadline deadline) override {
    if (options.device == Device::kCuda) {
      std::shared_ptr<void> slot;
      const auto make = [&](const char* role, int threads) -> Result<std::shared_ptr<Worker>> {
        if (slot == nullptr) {
          NEREID_TRY(slot, slots_->take(deadline));
        }
        NEREID_TRY(const auto cuda, cuda_.running());  // keeps processes of its own warm
        NEREID_TRY(auto worker, cuda->fork(role, threads));
        Worker* raw = worker.get();
        return std::shared_ptr<Worker>(raw, [worker = std::move(worker), slot](Worker*) mutable {
          worker.reset();
          slot.reset();
        });
      };
      return open_session(reference, candidate, options, make, *cuda_.memory, deadline);
    }
    NEREID_TRY(const auto cpu, cpu_.running());
    const auto make = [&](const char* role, int threads) {
      return cpu->worker(role, threads, one_author_ || role == std::string_view("reference"));
    };
    return open_session(reference, candidate, options, make, *cpu_.memory, deadline);
  }

  std::string isolation(Device device) const override {
    return device == Device::kCuda ? cuda_.isolation() : cpu_.isolation();
  }

 private:
  struct Workers {
    Workers(ForkServerSpec server_spec, const ServerOptions& options) : spec(std::move(server_spec)) {
      if (options.accept_weak_isolation) spec.more.emplace_back("--accept-weak-isolation");
    }

    // One that died is started again.
    Result<std::shared_ptr<ForkServer>> running() {
      const std::lock_guard lock(mutex);
      if (server == nullptr || server->lost()) {
        NEREID_TRY(server, ForkServer::start(spec));
      }
      return server;
    }

    std::string isolation() const {
      const std::lock_guard lock(mutex);
      return server == nullptr ? "" : server->isolation();
    }

    ForkServerSpec spec;
    mutable std::mutex mutex;
    std::shared_ptr<ForkServer> server;  // null until it is first asked for
    const std::shared_ptr<MemoryAdmission> memory = std::make_shared<MemoryAdmission>();
  };

  Workers cpu_, cuda_;
  const bool one_author_;
  std::shared_ptr<Slots> slots_;
  std::future<void> starting_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& wanted) {
  ServerOptions options = wanted;
  const auto next_to_program = [](const std::string& program, const char* name) -> Result<std::string> {
    if (!program.empty()) return program;
    NEREID_TRY(const auto installation, Installation::locate());
    return (installation.bin / name).string();
  };
  NEREID_TRY(options.program, next_to_program(options.program, "nereid-replay"));
  NEREID_TRY(options.cuda_program, next_to_program(options.cuda_program, "nereid-replay-cuda"));
  auto server = std::make_unique<WorkerServer>(options);
  NEREID_TRY_STATUS(server->start(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace nereid::replay
