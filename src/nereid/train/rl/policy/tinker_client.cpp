#include "nereid/train/rl/policy/tinker_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nereid/base/deadline.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::train {
namespace {

constexpr int kMillisecondsBetweenLooks = 100;  // for an interrupt

constexpr double kSecondsToCancel = 5;

}  // namespace

Result<std::unique_ptr<TinkerClient>> TinkerClient::start(const Installation& installation,
                                                          const std::filesystem::path& log) {
  std::unique_ptr<TinkerClient> client(new TinkerClient);
  client->log_ = log;
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  const Fd child_in(in[0]);
  client->to_ = Fd(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  const Fd child_out(out[1]);
  client->from_ = Fd(out[0]);
  (void)::fcntl(client->to_.get(), F_SETFL, O_NONBLOCK);
  const std::string errors_path = log.empty() ? "/dev/null" : log.string();
  const Fd errors(::open(errors_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!errors.valid()) return our_error("{}: {}", errors_path, std::strerror(errno));
  auto environment = sandbox::own_environment();
  environment.push_back("PYTHONPATH=" + installation.package.parent_path().string());
  NEREID_TRY(client->pid_,
             sandbox::spawn({.words = {installation.python.string(), "-m", "nereid._tinker"},
                             .environment = std::move(environment),
                             .descriptors = {{child_in.get(), 0}, {child_out.get(), 1}, {errors.get(), 2}},
                             .own_session = true}));
  client->killed_at_exit_ = KilledAtExit(client->pid_);
  return client;
}

TinkerClient::~TinkerClient() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  killed_at_exit_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

Status TinkerClient::send(std::string line) {
  while (!line.empty()) {
    pollfd one{to_.get(), POLLOUT, 0};
    (void)::poll(&one, 1, -1);
    const ssize_t sent = ::write(to_.get(), line.data(), line.size());
    if (sent < 0 && errno != EINTR && errno != EAGAIN)
      return our_error("the service's client ended; see {}", log_.string());
    line.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return ok_status();
}

// What comes of the request after this is not read.
Error TinkerClient::cancel() {
  Error interruption{"interrupted", Blame::kInterrupted};
  if (!send("{\"op\":\"cancel\"}\n").ok()) return interruption;
  const Deadline patience = Deadline::after(kSecondsToCancel);
  while (!patience.passed()) {
    const auto line = read_line(/*interruptible=*/false);
    if (!line.ok() || *line == "{\"cancelled\": true}") break;
  }
  return interruption;
}

Result<Json> TinkerClient::ask(const Json& request, bool interruptible, const LineCallback& on_part) {
  NEREID_TRY_STATUS(send(request.dump() + "\n"));
  for (;;) {
    const auto line = read_line(interruptible);
    if (!line.ok()) return line.error().blame == Blame::kInterrupted ? cancel() : line.error();
    NEREID_TRY(Json answer, parse_json(*line, "the service's client"));
    if (const auto error = answer.find("error"); error != answer.end()) {
      const std::string text = error->get<std::string>();
      if (answer.value("blame", "") == "input") return input_error("{}", text);
      return our_error("{}", text);
    }
    if (!answer.contains("prompt")) return answer;
    if (on_part) NEREID_TRY_STATUS(on_part(answer));
  }
}

Result<std::string> TinkerClient::read_line(bool interruptible) {
  for (size_t looked = 0;;) {
    if (const size_t at = incoming_.find('\n', looked); at != incoming_.npos) {
      std::string line = incoming_.substr(0, at);
      incoming_.erase(0, at + 1);
      return line;
    }
    looked = incoming_.size();
    if (interruptible && interrupted()) return Error{"interrupted", Blame::kInterrupted};
    pollfd one{from_.get(), POLLIN, 0};
    if (::poll(&one, 1, kMillisecondsBetweenLooks) <= 0) continue;
    char bytes[1 << 16];
    const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return our_error("the service's client ended; see {}", log_.string());
    incoming_.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace nereid::train
