#include "nereid/replay/cuda/cuda_server.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>

#include "nereid/replay/build_id.h"
#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/cuda/cuda_metrics.h"
#include "nereid/replay/cuda/cuda_role.h"
#include "nereid/replay/host/worker_process.h"
#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/sandbox/jail/cuda_isolation.h"

namespace nereid::replay::cuda {
namespace {

constexpr int kContextLost = 91, kNoDevice = 92;

// One process that has, or is making, a context. It plays one role for life: what a reference left in its
// memory, no candidate can come upon.
class Kept {
 public:
  static Result<std::unique_ptr<Kept>> start(int device, const sandbox::Jail* jail) {
    NEREID_TRY(auto ends, make_socket_pair());
    if (jail != nullptr) NEREID_TRY_STATUS(jail->before_fork());
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // Closes inherited sockets, so that other sessions see the end of theirs.
      const int own = ends.second.release();
      close_range(3, static_cast<unsigned>(own) - 1, 0);
      close_range(static_cast<unsigned>(own) + 1, ~0U, 0);
      run_cuda_process(own, device, jail);
    }
    if (jail != nullptr) NEREID_TRY_STATUS(jail->after_fork());
    if (pid < 0) return our_error("fork failed");
    return std::unique_ptr<Kept>(new Kept(std::move(ends.first), pid));
  }
  ~Kept() { end(); }

  pid_t pid() const { return pid_; }
  const std::string& role() const { return role_; }
  bool playing() const { return playing_; }
  bool leaving() const { return leave_by_.has_value(); }

  // Hears what it has to say until `deadline`: whether it is at rest, warm and without a session. An error
  // where it is gone, or said so.
  Result<bool> rests(Deadline deadline) {
    while (expected_messages_ > 0) {
      bool timed_out = false;
      auto word = receive_message(socket_.get(), deadline, &timed_out);
      if (timed_out) return false;
      if (!word.ok()) return word.error();
      if (word->document.contains("error"))
        return our_error("{}", word->document["error"].get<std::string>());
      --expected_messages_;
    }
    playing_ = false;
    leave_by_.reset();
    return true;
  }
  // It plays when it is warm; until then the request waits in its socket.
  Status play(const std::string& role, int socket) {
    playing_ = true;
    role_ = role;
    ++expected_messages_;
    return send_message(socket_.get(), {{"play", role}}, {socket});
  }
  // Its session is over: it has until `deadline` to come to rest.
  void leave(Deadline deadline) { leave_by_ = deadline; }
  bool late() const { return leave_by_ && leave_by_->passed(); }
  // Kills it where it lives. The status is waitpid's.
  int end() {
    if (pid_ == 0) return status_;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status_;
  }

 private:
  Kept(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  Fd socket_;
  pid_t pid_;
  std::string role_;
  int status_ = 0;
  int expected_messages_ = 1;  // one when it is warm, one after each session
  bool playing_ = false;
  std::optional<Deadline> leave_by_;
};

class Server {
 public:
  explicit Server(const CudaServerOptions& options) : options_(options) {}

  Status start() {
    NEREID_TRY_STATUS(find_jail());
    refill();
    return ok_status();
  }
  const std::string& isolation() const { return isolation_; }

  Result<Json> handle(Message& request) {
    if (!request.document.contains("fork"))
      return end(request.document.at("end").get<pid_t>(), request.document.value("orderly", false));
    if (request.descriptors.size() != 1) return our_error("fork: expected one socket");
    const auto role = request.document.at("fork").get<std::string>();
    NEREID_TRY(Kept * kept, take(role));
    NEREID_TRY_STATUS(kept->play(role, request.descriptors[0].get()));
    const Json answer = {{"pid", kept->pid()}};
    refill();
    return answer;
  }

 private:
  // The first process, warm: whether there is a GPU at all, and in which jail its driver can live.
  Status find_jail() {
    const Deadline all = Deadline::after(112);  // the judge waits a little longer for this server
    if (!options_.jail) {
      isolation_ = "none: switched off";
      return start_first(all);
    }
    std::string before;
    for (const sandbox::CudaFit& fit : sandbox::cuda_fits()) {
      const Status started = start_in(fit, all);
      if (started.ok()) {
        isolation_ = sandbox::describe(jail_->isolation()) + before;
        return ok_status();
      }
      before += fmt::format(" ({}: {})", fit.name, started.error().message);
    }
    jail_.reset();
    isolation_ = "none" + before;
    NEREID_TRY_STATUS(start_first(all));  // where there is no GPU, that is all there is to say
    if (options_.accept_weak_isolation) return ok_status();
    kept_.clear();
    return our_error("the GPU's driver works in no jail with enough isolation layers for a hostile trace:{}",
                     before);
  }
  Status start_in(const sandbox::CudaFit& fit, Deadline all) {
    NEREID_TRY(sandbox::Jail jail, sandbox::Jail::prepare(sandbox::cuda_policy(fit)));
    if (!jail.isolation().enough() && !options_.accept_weak_isolation)
      return our_error("too few isolation layers: {}", sandbox::describe(jail.isolation()));
    jail_.emplace(std::move(jail));
    return start_first(all);
  }
  Status start_first(Deadline all) {
    NEREID_TRY(auto first, start_one());
    constexpr double kMost = 28;  // a driver may hang in a jail, and there are others to try
    NEREID_TRY(const bool rests, first->rests(Deadline::earlier(all, Deadline::after(kMost))));
    if (!rests) return our_error("a CUDA process was not ready within {} s", kMost);
    kept_.push_back(std::move(first));
    return ok_status();
  }
  Result<std::unique_ptr<Kept>> start_one() const {
    return Kept::start(options_.device, jail_ ? &*jail_ : nullptr);
  }

  // One for this role, warm if there is one.
  Result<Kept*> take(const std::string& role) {
    const Deadline patience = Deadline::after(2 * options_.patience);
    while (true) {
      reap_processes();
      if (Kept* idle = idle_for(role)) return idle;
      if (static_cast<int>(kept_.size()) >= options_.most) {
        // One that has played the other role makes room.
        const auto other = std::find_if(kept_.begin(), kept_.end(), [](auto& k) { return !k->playing(); });
        if (other != kept_.end()) kept_.erase(other);
      }
      if (static_cast<int>(kept_.size()) < options_.most) {
        NEREID_TRY(auto fresh, start_one());
        kept_.push_back(std::move(fresh));
        return kept_.back().get();
      }
      if (patience.passed())
        return our_error("{} CUDA processes are at work, no more are started", kept_.size());
      usleep(2000);
    }
  }

  // Lets go of those that are gone, and of those that do not come to rest.
  void reap_processes() {
    std::erase_if(kept_, [](auto& kept) {
      if (kept->playing() && !kept->leaving()) return false;
      return !kept->rests(Deadline::after(0)).ok() || kept->late();
    });
  }

  Kept* idle_for(const std::string& role) {
    Kept* best = nullptr;
    const auto worth = [&](Kept& kept) {
      const auto rests = kept.rests(Deadline::after(0));
      return (rests.ok() && *rests ? 2 : 0) + (kept.role() == role ? 1 : 0);
    };
    for (auto& kept : kept_)
      if (!kept->playing() && (kept->role() == role || kept->role().empty()))
        if (best == nullptr || worth(*kept) > worth(*best)) best = kept.get();
    return best;
  }

  // Orderly: the process gets time to clean up, without a wait. Otherwise the answer says how the process
  // ended.
  Result<Json> end(pid_t pid, bool orderly) {
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](auto& kept) { return kept->pid() == pid; });
    if (found == kept_.end()) return our_error("no such worker");
    if (orderly) {
      (*found)->leave(Deadline::after(options_.patience));
      return Json{{"status", 0}};
    }
    const auto rests = (*found)->rests(Deadline::after(options_.patience));
    if (rests.ok() && *rests) return Json{{"status", 0}};
    const int status = (*found)->end();
    kept_.erase(found);
    refill();
    return Json{{"status", status}};
  }

  void refill() {
    const auto idle = std::count_if(kept_.begin(), kept_.end(), [](auto& kept) { return !kept->playing(); });
    for (auto i = idle; i < options_.spare && static_cast<int>(kept_.size()) < options_.most; ++i) {
      auto fresh = start_one();
      if (!fresh.ok()) return;  // the next request that needs one says why
      kept_.push_back(*std::move(fresh));
    }
  }

  const CudaServerOptions options_;
  std::optional<sandbox::Jail> jail_;
  std::string isolation_;
  std::vector<std::unique_ptr<Kept>> kept_;
};

// Without them PyTorch's operators compare outputs: slower, with the same numbers.
void use_our_metrics(const CudaMachine& machine) {
  auto metrics = load_fused_metrics(machine);
  if (metrics.ok())
    use_fused_metrics(*std::move(metrics));
  else
    std::fprintf(stderr, "nereid-replay-cuda: outputs are compared by PyTorch's operators: %s\n",
                 metrics.error().message.c_str());
}

// What libraries make on first use, made before the first session.
void warm(CudaMachine& machine, CacheFlush& flush) {
  c10::InferenceMode inference;
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(machine.device(trace::Device::kCuda));
  at::manual_seed(1);
  const at::Tensor a = at::randn({64, 64}, floats);
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
    const at::Tensor x = a.to(type);
    at::mm(x, x).add_(1).softmax(-1).sum();
    at::isclose(x, x).all();
  }
  at::where(at::isfinite(a), a, a).abs().aminmax();
  rms(a);
  flush.run();
  machine.synchronize();
}

}  // namespace

void run_cuda_process(int server, int device, const sandbox::Jail* jail) {
  signal(SIGPIPE, SIG_IGN);
  const auto give_up = [&](int status, const std::string& why) {
    (void)send_message(server, {{"error", why}});
    _exit(status);
  };
  if (jail != nullptr)
    if (const auto begun = jail->begin({server}); !begun.ok()) give_up(kNoJail, begun.error().message);
  at::set_num_threads(1);
  auto machine = CudaMachine::create(device);
  if (!machine.ok()) give_up(kNoDevice, machine.error().message);
  if (jail != nullptr)
    if (const auto finished = jail->finish(); !finished.ok()) give_up(kNoJail, finished.error().message);
  std::optional<CacheFlush> flush;
  try {
    flush.emplace(**machine);
    use_our_metrics(**machine);
    warm(**machine, *flush);
  } catch (const std::exception& error) {
    give_up(kNoDevice, error.what());
  }
  while (send_message(server, {{"idle", true}}).ok()) {
    auto request = receive_message(server, Deadline::never());
    if (!request.ok() || request->descriptors.size() != 1) break;
    {
      const Fd socket = std::move(request->descriptors[0]);
      auto played = request->document.at("play").get<std::string>() == "reference"
                        ? make_reference_role(**machine)
                        : make_candidate_role(**machine);
      CudaRole role(**machine, *flush, std::move(played));
      serve(socket.get(), role);
      if (!(*machine)->works()) _exit(kContextLost);  // nothing on the GPU can be taken down in order
    }
    (*machine)->fenced = false;
    (*machine)->forget_kernels();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  _exit(0);
}

int run_cuda_server(int control, const CudaServerOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  Server server(options);
  if (const auto started = server.start(); !started.ok()) {
    (void)send_message(control, {{"error", started.error().message}});
    return 3;
  }
  if (!send_message(control, hello(server.isolation())).ok()) return 0;
  while (true) {
    auto request = receive_message(control, Deadline::never());
    if (!request.ok()) return 0;
    Result<Json> answer = our_error("");
    try {
      answer = server.handle(*request);
    } catch (const std::exception& error) {
      answer = our_error("{}", error.what());
    }
    if (!send_message(control, answer.ok() ? *answer : Json{{"error", answer.error().message}}).ok())
      return 0;
  }
}

}  // namespace nereid::replay::cuda
