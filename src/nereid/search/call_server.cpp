#include "nereid/search/call_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/replay/host/gpu_gate.h"
#include "nereid/sandbox/jail/cuda_isolation.h"
#include "nereid/sandbox/jail/policy_json.h"
#include "nereid/sandbox/zygote/channel.h"
#include "nereid/sandbox/zygote/python_home.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::search {
namespace {

constexpr double kStartSeconds = 300;  // imports from a cold disk
constexpr int kControlDescriptor = 3;

enum class Received { kPacket, kClosed, kLate, kInterrupted };

Received wait_for_packet(int fd, Deadline deadline) {
  while (true) {
    pollfd both[2] = {{fd, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const int ready = ::poll(both, 2, deadline.poll_milliseconds());
    if (interrupted()) return Received::kInterrupted;
    if (ready > 0 && both[0].revents != 0)
      return (both[0].revents & POLLIN) != 0 ? Received::kPacket : Received::kClosed;
    if (ready == 0) return Received::kLate;
  }
}

Error interruption() { return Error{"interrupted", Blame::kInterrupted}; }

void wait_until_closed(int fd) {
  const Deadline deadline = Deadline::after(5);
  while (!deadline.passed()) {
    pollfd one{fd, POLLIN, 0};
    if (::poll(&one, 1, deadline.poll_milliseconds()) <= 0) continue;
    const auto packet = sandbox::receive_packet(fd);
    if (!packet.ok() || !*packet) return;
  }
}

// The end of what a child and its libraries wrote.
std::string last_words(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text.ok()) return "";
  const size_t end = text->find_last_not_of(" \n");
  if (end == text->npos) return "";
  const size_t line = text->rfind('\n', end);
  return ": " + text->substr(line == text->npos ? 0 : line + 1, std::min<size_t>(end - line, 300));
}

// One child, from its order to its end: answers of as many modes as it lives for.
class Child {
 public:
  Child(const CallRequest& request, Deadline deadline, const std::filesystem::path& folder)
      : request_(request), deadline_(deadline), folder_(folder) {}

  // How many of the modes were answered, or declined for it.
  Result<size_t> listen(int channel, const std::function<void(const std::string&, const Json&)>& take) {
    double left = request_.patience;
    while (true) {
      const Stopwatch watch;
      const Received came = wait_for_packet(channel, Deadline::earlier(deadline_, Deadline::after(left)));
      left -= watch.seconds();
      if (came == Received::kInterrupted) return interruption();
      if (came == Received::kLate && deadline_.passed())
        return our_error("there was no time left for PyTorch's times");
      std::string gone;
      if (came == Received::kLate) {
        gone = fmt::format("it took longer than {:g} s and was stopped", request_.patience);
      } else {
        NEREID_TRY(const auto packet, came == Received::kClosed ? std::optional<std::string>()
                                                                : sandbox::receive_packet(channel));
        if (packet) {
          NEREID_TRY(const Json said, parse_json(*packet, "a baseline's process"));
          if (said.contains("done")) return request_.modes.size();
          if (said.contains("mode")) left = request_.patience;
          NEREID_TRY_STATUS(heard(said, channel, take));
          continue;
        }
        gone = "its process ended" + last_words(folder_ / "words.txt");
      }
      const size_t at = std::min(answered_, request_.modes.size() - 1);
      Json why = {{"declined", gone}};
      if (came == Received::kLate) why["timed_out"] = true;
      take(request_.modes[at], why);
      return at + 1;
    }
  }

 private:
  Status heard(const Json& said, int channel,
               const std::function<void(const std::string&, const Json&)>& take) {
    if (const auto ask = said.find("ask"); ask != said.end()) {
      turn_ = *ask == "alone" ? replay::gpu_gate().alone() : replay::gpu_gate().share();
      return sandbox::send_packet(channel, "go");
    }
    if (said.contains("leave")) turn_ = {};
    if (said.contains("mode") && answered_ < request_.modes.size())
      take(request_.modes[answered_++], said.value("answer", Json::object()));
    return ok_status();
  }

  const CallRequest& request_;
  const Deadline deadline_;
  const std::filesystem::path& folder_;
  replay::GpuGate::Pass turn_;
  size_t answered_ = 0;
};

}  // namespace

CallServer::~CallServer() { stop(); }

Status CallServer::run(const CallRequest& request, Deadline deadline,
                       const std::function<void(const std::string&, const Json&)>& take) {
  CallRequest left = request;
  while (!left.modes.empty()) {
    NEREID_TRY(const auto folder, TemporaryFolder::create());
    const auto program = folder.path() / "program.py";
    NEREID_TRY_STATUS(write_file_atomically(program, left.program));
    for (const auto& [name, content] : left.files)
      NEREID_TRY_STATUS(write_file_atomically(folder.path() / name, content));
    NEREID_TRY(auto channel, sandbox::make_channel());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return our_error("pipe: {}", strerror(errno));
    Fd theirs(ends[0]), lifeline(ends[1]);
    const Json packet = {
        {"program", program.string()},      {"modes", left.modes},     {"device", device_},
        {"seconds", left.seconds},          {"threads", left.threads}, {"direct", left.direct},
        {"folder", folder.path().string()}, {"kernels", left.kernels}};
    NEREID_TRY(const bool begun, order(packet, {channel.second.get(), theirs.get()}));
    if (!begun) {
      for (const auto& mode : left.modes) take(mode, Json{{"declined", declined_}});
      return ok_status();
    }
    channel.second.reset(), theirs.reset();
    Child child(left, deadline, folder.path());
    const auto answered = child.listen(channel.first.get(), take);
    // Its end, whether it came by itself or the lifeline is cut, before its folder goes.
    lifeline.reset();
    wait_until_closed(channel.first.get());
    NEREID_TRY(const size_t count, answered);
    left.modes.erase(left.modes.begin(), left.modes.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return ok_status();
}

Result<bool> CallServer::order(Json request, const std::vector<int>& descriptors) {
  const std::lock_guard lock(mutex_);
  if (!caches_) {
    NEREID_TRY(caches_, TemporaryFolder::create());
  }
  request["caches"] = caches_->path().string();
  const std::string packet = request.dump();
  for (int attempt = 0; declined_.empty(); ++attempt) {
    const bool running = control_.valid();
    if (!running) {
      NEREID_TRY_STATUS(start());
      if (!declined_.empty()) break;
    }
    const Status sent = sandbox::send_packet(control_.get(), packet, descriptors);
    if (sent.ok()) return true;
    if (!running || attempt > 0) return sent.error();
    control_.reset();  // it was lost
  }
  return false;
}

Status CallServer::start() {
  stop();
  std::vector<std::string> words = {installation_.python.string(), "-m", "nereid._timing.call_server",
                                    kind_ == Kind::kCompile ? "compile" : "torch"};
  if (kind_ == Kind::kCandidates) {
    NEREID_TRY(const Json given, jails());
    words.push_back(given.dump());
  }
  NEREID_TRY(auto channel, sandbox::make_channel());
  auto environment = sandbox::own_environment();
  environment.push_back("PYTHONPATH=" + installation_.package.parent_path().string());
  environment.push_back("CUDA_CACHE_DISABLE=1");  // what is not there is not made, nor believed
  environment.push_back("USE_PYTORCH_KERNEL_CACHE=0");
  NEREID_TRY(process_, sandbox::spawn({.words = words,
                                       .environment = std::move(environment),
                                       .descriptors = {{channel.second.get(), kControlDescriptor}},
                                       .own_session = true}));
  killed_at_exit_ = KilledAtExit(process_);
  channel.second.reset();
  control_ = std::move(channel.first);
  const Received came = wait_for_packet(control_.get(), Deadline::after(kStartSeconds));
  std::optional<std::string> ready;
  if (came == Received::kPacket) {
    NEREID_TRY(ready, sandbox::receive_packet(control_.get()));
  }
  if (ready) {
    NEREID_TRY(const Json said, parse_json(*ready, "the process that times programs"));
    declined_ = said.value("declined", "");
    if (!declined_.empty()) stop();
    return ok_status();
  }
  stop();
  if (came == Received::kInterrupted) return interruption();
  return our_error("the process that times programs did not start: see `{} -m nereid._timing.call_server {}`",
                   installation_.python.string(), words[3]);
}

// From the strictest on. Without isolation of files there is no jail for untrusted kernels.
Result<Json> CallServer::jails() const {
  NEREID_TRY(const auto home, sandbox::query_python_home(installation_.python, Deadline::after(60)));
  Json fits = Json::array();
  for (const auto& fit : sandbox::cuda_fits()) {
    if (!fit.own_root && !fit.landlock) continue;
    auto policy = sandbox::cuda_policy(fit);
    policy.limits.file_bytes = 1 << 20;  // of its words; no other file is open
    policy.shared_memory = false;
    policy.readable.insert(policy.readable.end(), home.trees.begin(), home.trees.end());
    policy.readable.push_back(std::filesystem::weakly_canonical(installation_.package).string());
    fits.push_back({{"name", fit.name}, {"policy", sandbox::to_json(policy)}});
  }
  return Json{{"library", (installation_.bin / "libnereid_jail.so").string()},
              {"device", device_},
              {"fits", std::move(fits)}};
}

void CallServer::stop() {
  control_.reset();
  if (process_ == 0) return;
  // It ends when its socket closes, and its children with it; it is killed where it does not.
  const Deadline deadline = Deadline::after(5);
  const auto ended = [&] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  };
  while (!ended() && !deadline.passed()) ::usleep(5000);
  ::kill(process_, SIGKILL);
  killed_at_exit_.reset();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
}

}  // namespace nereid::search
