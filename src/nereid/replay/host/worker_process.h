// A worker process as the judge sees it: a socket, a place in the trace, and an end.
#pragma once

#include <sys/types.h>
#include <atomic>

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/result.h"
#include "nereid/replay/message.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

// Where a worker is, in memory that it shares with us. The layout is worker/replay.h's Position.
class SharedPosition {
 public:
  static Result<SharedPosition> create();
  int fd() const { return fd_.get(); }
  Where where(const trace::Trace& trace) const;

 private:
  Fd fd_;
};

// How a request to a worker ended.
struct Reply {
  std::optional<Message> answer;
  // Without an answer: the limit that passed, or Ctrl-C; neither where the worker ended of itself.
  std::optional<LimitOwner> late{};
  bool interrupted = false;
  int status = 0;  // of the process as waitpid gives it, where there is no answer: the worker is gone then
};

class Worker {
 public:
  Worker(Fd socket, SharedPosition position) : socket_(std::move(socket)), position_(std::move(position)) {}
  virtual ~Worker() = default;

  // Whether it can be asked again.
  bool alive() const { return socket_.valid(); }
  // A worker that does not answer before `deadline`, or within `own_seconds` of its own (0: no such limit;
  // what it waited for a processor is not counted, see sandbox/zygote/process_times.h), is ended.
  Reply ask(const Json& request, const std::vector<int>& descriptors, Deadline deadline,
            double own_seconds = 0);
  const SharedPosition& position() const { return position_; }

 protected:
  // Ends the process and says how it ended; called more than once. An implementation's destructor sees to it
  // that the process ends, too.
  virtual int end() = 0;
  virtual pid_t process() const = 0;  // 0: gone
  void close_socket() { socket_.reset(); }

 private:
  void wait_for_answer(Reply& reply, Deadline deadline, double own_seconds) const;

  Fd socket_;
  SharedPosition position_;
};

// What a server is started with.
struct ForkServerSpec {
  std::string program = {};
  bool jail = true;
  std::vector<std::string> more = {};  // options of the program's own
  bool keep_warm = false;              // with NEREID_KEEP_WARM it may be an earlier command's, see leave()
};

// A running `nereid-replay --serve`, which forks workers.
class ForkServer : public std::enable_shared_from_this<ForkServer> {
 public:
  static Result<std::shared_ptr<ForkServer>> start(const ForkServerSpec& spec);
  ~ForkServer();
  // Leaves a server without workers to the next command of the same program, options and environment
  // (sandbox/zygote/worker_pool.h). One that is lost or still has workers ends when its owners drop it.
  static void leave(const std::shared_ptr<ForkServer>& server);
  // It is dead, or no longer answers: another must be started.
  bool lost() const { return lost_; }
  // Which stand around its workers, in words.
  const std::string& isolation() const { return isolation_; }
  // `role`: "reference" or "candidate". Thread-safe.
  Result<std::shared_ptr<Worker>> fork(const char* role, int threads);
  // A worker of its own, or (`again`) one that serves one session after another, up to a limit.
  Result<std::shared_ptr<Worker>> worker(const std::string& role, int threads, bool again);

 private:
  friend class ForkedWorker;
  ForkServer(Fd socket, Fd process, pid_t pid)
      : socket_(std::move(socket)), process_(std::move(process)), pid_(pid), killed_at_exit_(pid) {}
  static Result<std::shared_ptr<ForkServer>> spawn(const ForkServerSpec& spec);
  static std::shared_ptr<ForkServer> adopt(const ForkServerSpec& spec, const std::string& key);
  Status take_hello(Json hello, const std::string& program);
  Status send_errors_to(int descriptor);
  Result<Json> ask(const Json& request, const std::vector<int>& descriptors = {});

  struct Idle {
    std::shared_ptr<Worker> worker;
    std::string role;
    int threads = 1, sessions = 0;
  };
  void give_back(Idle back);

  std::mutex mutex_;
  Fd socket_;
  Fd process_;  // a pidfd: it may be another command's child; invalid on kernels before 5.3
  const pid_t pid_;
  KilledAtExit killed_at_exit_;
  std::string bin_, key_;  // of the worker pool; empty: it is not kept warm
  std::string hello_;      // its first message
  std::atomic<bool> lost_ = false;
  std::atomic<int> living_ = 0;  // workers
  std::string isolation_;        // as it said when it was warm
  std::mutex idle_mutex_;
  std::vector<Idle> idle_;
};

// "signal 11 (Segmentation fault)", "exit status 1".
std::string describe_end(int status);
// The exit status of a worker that could not enter its jail.
inline constexpr int kNoJail = 90;

}  // namespace nereid::replay
