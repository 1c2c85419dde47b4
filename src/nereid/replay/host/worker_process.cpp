#include "nereid/replay/host/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/replay/build_id.h"
#include "nereid/sandbox/zygote/process_times.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/sandbox/zygote/worker_pool.h"

namespace nereid::replay {
namespace {

constexpr double kAnswerSeconds = 60;       // from an answer's first byte to its last
constexpr double kFirstPollSeconds = 0.05;  // between two looks at what a late worker has had

// With NEREID_REPLAY_TIMES set, how long each request to a worker took, on stderr. docs/replay.md names the
// requests.
class RequestTimer {
 public:
  explicit RequestTimer(const Json& request) {
    if (std::getenv("NEREID_REPLAY_TIMES") != nullptr) request_ = request.dump().substr(0, kMaxPerRequest);
  }
  ~RequestTimer() {
    if (!request_.empty()) fmt::print(stderr, "{:9.1f} ms {}\n", 1e3 * watch_.seconds(), printable(request_));
  }
  RequestTimer(const RequestTimer&) = delete;
  RequestTimer& operator=(const RequestTimer&) = delete;

 private:
  static constexpr size_t kMaxPerRequest = 120;
  std::string request_;
  Stopwatch watch_;
};

}  // namespace

Result<SharedPosition> SharedPosition::create() {
  SharedPosition out;
  out.fd_ = Fd(memfd_create("nereid-position", MFD_CLOEXEC));
  if (!out.fd_.valid() || ftruncate(out.fd_.get(), 4096) != 0) return our_error("memfd: {}", strerror(errno));
  return out;
}

Where SharedPosition::where(const trace::Trace& trace) const {
  int32_t words[3] = {-1, -1, -1};
  if (pread(fd_.get(), words, sizeof words, 0) != sizeof words) return {};
  for (const auto& phase : trace.phases)
    if (static_cast<int>(phase.kind) == words[0] && phase.call == words[1])
      return where_is(trace, phase, words[2]);
  return {};
}

Reply Worker::ask(const Json& request, const std::vector<int>& descriptors, Deadline deadline,
                  double own_seconds) {
  const RequestTimer timer(request);
  Reply reply;
  if (socket_.valid() && send_message(socket_.get(), request, descriptors).ok()) {
    wait_for_answer(reply, deadline, own_seconds);
    if (!reply.late && !reply.interrupted) {
      // What has begun to answer has answered, but for one that no longer is what we made it.
      const Deadline whole =
          Deadline::earlier(deadline, Deadline::after(kAnswerSeconds, LimitOwner::kCandidate));
      bool late = false;
      auto answer = receive_message(socket_.get(), whole, &late);
      if (answer.ok()) {
        reply.answer = std::move(answer).value();
        return reply;
      }
      reply.interrupted = answer.error().blame == Blame::kInterrupted;
      if (late) reply.late = whole.owner();
    }
  }
  reply.status = end();
  return reply;
}

void Worker::wait_for_answer(Reply& reply, Deadline deadline, double own_seconds) const {
  const Stopwatch watch;
  const auto before = own_seconds > 0 ? sandbox::times_of(process()) : std::nullopt;
  Deadline look = own_seconds > 0 ? Deadline::after(own_seconds, LimitOwner::kCandidate) : Deadline::never();
  for (;;) {
    pollfd waiting[2] = {{socket_.get(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const int ready = ::poll(waiting, 2, Deadline::earlier(deadline, look).poll_milliseconds());
    if (ready < 0 && errno == EINTR) continue;
    if (waiting[0].revents != 0) return;
    reply.interrupted = waiting[1].revents != 0;
    if (reply.interrupted) return;
    if (deadline.passed()) reply.late = deadline.owner();
    if (reply.late) return;
    if (!look.passed()) continue;
    auto times = before ? sandbox::times_of(process()) : std::nullopt;
    if (times) times->processor -= before->processor, times->waited -= before->waited;
    const double wall = watch.seconds(), left = own_seconds - sandbox::seconds_at_work(wall, times);
    if (left <= 0 || wall >= kMaxLimitExtension * own_seconds) reply.late = LimitOwner::kCandidate;
    if (reply.late) return;
    look = Deadline::after(std::max(left, kFirstPollSeconds), LimitOwner::kCandidate);
  }
}

class ForkedWorker : public Worker {
 public:
  ForkedWorker(std::weak_ptr<ForkServer> server, Fd socket, SharedPosition position, pid_t pid)
      : Worker(std::move(socket), std::move(position)), server_(std::move(server)), pid_(pid) {}
  ~ForkedWorker() override { end(/*orderly=*/true); }

 protected:
  int end() override { return end(/*orderly=*/false); }
  pid_t process() const override { return pid_; }

 private:
  int end(bool orderly) {
    if (pid_ == 0) return status_;
    close_socket();
    const auto pid = std::exchange(pid_, 0);
    const auto server = server_.lock();
    if (!server) return status_;  // gone, with all its workers
    const auto answer = server->ask({{"end", pid}, {"orderly", orderly}});
    if (answer.ok()) status_ = answer->value("status", 0), --server->living_;
    return status_;
  }

  std::weak_ptr<ForkServer> server_;
  pid_t pid_;
  int status_ = 0;
};

namespace {

// Threads of PyTorch's operators that wait for each other compute nothing, and by default they spin for as
// long as a time slice: where others judge, too, that is half of a worker's processor time. So many turns are
// some 30 microseconds.
constexpr const char* kShortSpin = "GOMP_SPINCOUNT=10000";

bool begins_with_any(std::string_view variable, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return variable.starts_with(begin); });
}

// What the libraries of a server on the CPU read. Nothing else of a command's environment reaches it: it also
// serves commands with other stores, caches and folders, and its workers, which read hostile traces, have no
// use for passwords and keys of services.
constexpr std::string_view kServerEnvironment[] = {"PATH=",
                                                   "LANG=",
                                                   "LC_",
                                                   "LD_",
                                                   "GLIBC_TUNABLES=",
                                                   "MALLOC_",
                                                   "OMP_",
                                                   "GOMP_",
                                                   "KMP_",
                                                   "MKL_",
                                                   "DNNL_",
                                                   "ONEDNN_",
                                                   "ATEN_",
                                                   "TORCH_",
                                                   "PYTORCH_",
                                                   "CUDA_VISIBLE_DEVICES=",
                                                   "ASAN_",
                                                   "LSAN_",
                                                   "TSAN_",
                                                   "UBSAN_",
                                                   "NEREID_ISOLATION="};
constexpr std::string_view kSpinSettings[] = {"GOMP_SPINCOUNT=", "OMP_WAIT_POLICY="};

sandbox::SpawnSpec spawn_spec_of(const ForkServerSpec& spec) {
  std::vector<std::string> words{spec.program, "--serve"};
  if (!spec.jail) words.push_back("--no-jail");
  words.insert(words.end(), spec.more.begin(), spec.more.end());
  auto environment = sandbox::own_environment();
  if (spec.keep_warm)  // a driver reads more than is known here
    std::erase_if(environment,
                  [](const std::string& variable) { return !begins_with_any(variable, kServerEnvironment); });
  std::ranges::sort(environment);  // the order is no difference
  environment.emplace_back(sandbox::kHugeHeap);
  const bool spins = std::ranges::any_of(
      environment, [](const std::string& variable) { return begins_with_any(variable, kSpinSettings); });
  if (!spins) environment.emplace_back(kShortSpin);
  return {.words = std::move(words), .environment = std::move(environment), .own_session = true};
}

// Whatever makes one server another.
std::string key_of(const ForkServerSpec& spec) {
  const auto spawned = spawn_spec_of(spec);
  std::string all = sandbox::stamp_of(spec.program);
  for (const auto* list : {&spawned.words, &spawned.environment})
    for (const auto& word : *list) all += '\0', all += word;
  return sha256_hex(all);
}

}  // namespace

Result<std::shared_ptr<ForkServer>> ForkServer::start(const ForkServerSpec& spec) {
  const bool keeps = spec.keep_warm && sandbox::seconds_kept_warm() > 0;
  const std::string key = keeps ? key_of(spec) : "";
  auto server = keeps ? adopt(spec, key) : nullptr;
  if (!server) {
    NEREID_TRY(server, spawn(spec));
  }
  server->bin_ = std::filesystem::path(spec.program).parent_path(), server->key_ = key;
  return server;
}

Result<std::shared_ptr<ForkServer>> ForkServer::spawn(const ForkServerSpec& spec) {
  NEREID_TRY(auto ends, make_socket_pair());
  auto spawned = spawn_spec_of(spec);
  spawned.descriptors = {{ends.second.get(), 3}, {2, 2}};
  NEREID_TRY(const auto pid, sandbox::spawn(spawned));
  ends.second.reset();
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::shared_ptr<ForkServer> server(new ForkServer(std::move(ends.first), std::move(process), pid));
  // It says when it is warm, or why it cannot serve.
  NEREID_TRY(Message hello, receive_message(server->socket_.get(), Deadline::after(120)));
  NEREID_TRY_STATUS(server->take_hello(std::move(hello.document), spec.program));
  return server;
}

// Null where there is none, or none that answers.
std::shared_ptr<ForkServer> ForkServer::adopt(const ForkServerSpec& spec, const std::string& key) {
  auto worker = sandbox::take_warm(key);
  if (!worker || !worker->process.valid()) return nullptr;
  std::shared_ptr<ForkServer> server(
      new ForkServer(std::move(worker->control), std::move(worker->process), worker->pid));
  auto hello = parse_json(worker->ready, "a replay server's first message");
  const bool serves = hello.ok() && server->take_hello(std::move(*hello), spec.program).ok() &&
                      server->send_errors_to(STDERR_FILENO).ok();
  return serves ? server : nullptr;
}

void ForkServer::leave(const std::shared_ptr<ForkServer>& server) {
  if (!server || server->key_.empty() || !server->process_.valid() || server->lost() || interrupted()) return;
  std::vector<Idle> idle;
  {
    const std::lock_guard lock(server->idle_mutex_);
    idle = std::exchange(server->idle_, {});
  }
  idle.clear();
  if (server->living_ != 0) return;
  // The next command's errors are not ours, and what we write to may wait for all writers to be gone.
  const Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!server->send_errors_to(nowhere.get()).ok()) return;
  sandbox::WarmWorker worker{.pid = server->pid_, .ready = server->hello_};
  worker.control = std::move(server->socket_), worker.process = std::move(server->process_);
  server->killed_at_exit_.reset();
  const Status left =
      sandbox::leave_warm(server->bin_, server->key_, std::move(worker), sandbox::seconds_kept_warm());
  if (!left.ok()) spdlog::debug("no replay server is kept warm: {}", left.error().message);
}

ForkServer::~ForkServer() {
  if (!socket_.valid()) return;  // left to another command
  socket_.reset();
  if (!process_.valid())
    kill(pid_, SIGKILL);
  else if (::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0) == 0) {
    pollfd gone{process_.get(), POLLIN, 0};
    while (::poll(&gone, 1, -1) < 0 && errno == EINTR) continue;
  }
  killed_at_exit_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;  // ours, if no other command's
}

Status ForkServer::take_hello(Json hello, const std::string& program) {
  if (hello.contains("error")) return our_error("the replay server: {}", hello["error"].dump());
  NEREID_TRY_STATUS(same_build(hello, program));
  isolation_ = hello.value("isolation", ""), hello_ = hello.dump();
  return ok_status();
}

// Its stderr, and that of workers that it forks from now on.
Status ForkServer::send_errors_to(int descriptor) {
  NEREID_TRY([[maybe_unused]] const Json done, ask({{"errors", true}}, {descriptor}));
  return ok_status();
}

Result<Json> ForkServer::ask(const Json& request, const std::vector<int>& descriptors) {
  std::lock_guard lock(mutex_);
  if (lost_) return our_error("the replay server is lost");
  const Status sent = send_message(socket_.get(), request, descriptors);
  lost_ = !sent.ok();
  NEREID_TRY_STATUS(sent);
  auto received = receive_message(socket_.get(), Deadline::after(60));
  lost_ = !received.ok();
  NEREID_TRY(Message answer, std::move(received));
  if (answer.document.contains("error"))
    return our_error("the replay server: {}", answer.document["error"].dump());
  return std::move(answer.document);
}

Result<std::shared_ptr<Worker>> ForkServer::fork(const char* role, int threads) {
  NEREID_TRY(auto ends, make_socket_pair());
  NEREID_TRY(auto position, SharedPosition::create());
  NEREID_TRY(const Json answer, ask({{"fork", role}, {"threads", threads}}, {ends.second.get()}));
  ++living_;
  return std::shared_ptr<Worker>(std::make_shared<ForkedWorker>(
      shared_from_this(), std::move(ends.first), std::move(position), answer.at("pid").get<pid_t>()));
}

Result<std::shared_ptr<Worker>> ForkServer::worker(const std::string& role, int threads, bool again) {
  if (!again) return fork(role.c_str(), threads);
  Idle taken{nullptr, role, threads, 0};
  {
    std::lock_guard lock(idle_mutex_);
    for (auto it = idle_.begin(); it != idle_.end(); ++it)
      if (it->threads == threads && it->role == role) {
        taken = std::move(*it);
        idle_.erase(it);
        break;
      }
  }
  if (!taken.worker) {
    NEREID_TRY(taken.worker, fork(role.c_str(), threads));
  }
  ++taken.sessions;
  Worker* worker = taken.worker.get();
  // It comes back by itself while the server lives; idle workers do not keep the server alive.
  return std::shared_ptr<Worker>(worker, [self = weak_from_this(), taken](Worker*) mutable {
    if (auto server = self.lock())
      server->give_back(std::move(taken));
    else
      taken.worker.reset();
  });
}

void ForkServer::give_back(Idle back) {
  constexpr int kMaxSessions = 256;  // so that nothing in it grows for ever
  if (!back.worker->alive() || back.sessions >= kMaxSessions) return;
  if (!back.worker->ask({{"do", "forget"}}, {}, Deadline::after(10)).answer) return;
  std::lock_guard lock(idle_mutex_);
  idle_.push_back(std::move(back));
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace nereid::replay
