#include "nereid/train/ranks/local_ranks.h"

#include <ATen/ops/empty_like.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "nereid/base/deadline.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/train/ranks/nccl.h"

namespace nereid::train {
namespace {

constexpr double kGraceSeconds = 5;  // between the first rank's end and the others'
constexpr std::string_view kEndedUnexpectedly = " is gone";

// The patience that a socket was given.
int64_t patience_of(int fd) {
  timeval patience{};
  socklen_t size = sizeof patience;
  (void)::getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, &size);
  return patience.tv_sec;
}

Status send_all(int fd, const void* bytes, size_t size, int64_t to) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN)
      return our_error("rank {} has not taken anything for {} s", to, patience_of(fd));
    if (sent < 0) return our_error("rank {}{}", to, kEndedUnexpectedly);
    at += sent, size -= static_cast<size_t>(sent);
  }
  return ok_status();
}

Status receive_all(int fd, void* bytes, size_t size, int64_t from) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(fd, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN)
      return our_error("rank {} has not answered for {} s", from, patience_of(fd));
    if (got <= 0) return our_error("rank {}{}", from, kEndedUnexpectedly);
    at += got, size -= static_cast<size_t>(got);
  }
  return ok_status();
}

Status send_text(int fd, const std::string& text, int64_t to) {
  const uint64_t size = text.size();
  NEREID_TRY_STATUS(send_all(fd, &size, sizeof size, to));
  return send_all(fd, text.data(), text.size(), to);
}
Status receive_text(int fd, std::string& text, int64_t from) {
  uint64_t size = 0;
  NEREID_TRY_STATUS(receive_all(fd, &size, sizeof size, from));
  text.resize(size);
  return receive_all(fd, text.data(), text.size(), from);
}

// A star around rank 0.
class SocketRanks : public Ranks {
 public:
  explicit SocketRanks(RankLink link) : link_(std::move(link)) {
    const timeval patience{.tv_sec = static_cast<time_t>(link_.patience_seconds), .tv_usec = 0};
    for (const Fd& socket : link_.sockets)
      if (socket.valid())
        for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
          (void)::setsockopt(socket.get(), SOL_SOCKET, option, &patience, sizeof patience);
  }
  int64_t rank() const override { return link_.rank; }
  int64_t count() const override { return link_.count; }

  Status sum(std::vector<double>& values) override {
    std::vector<double> others(values.size());
    const size_t bytes = values.size() * sizeof(double);
    if (rank() != 0) {
      NEREID_TRY_STATUS(send_all(hub(), values.data(), bytes, 0));
      return receive_all(hub(), values.data(), bytes, 0);
    }
    for (int64_t r = 1; r < count(); ++r) {
      NEREID_TRY_STATUS(receive_all(to(r), others.data(), bytes, r));
      for (size_t i = 0; i < values.size(); ++i) values[i] += others[i];
    }
    for (int64_t r = 1; r < count(); ++r) NEREID_TRY_STATUS(send_all(to(r), values.data(), bytes, r));
    return ok_status();
  }

  Result<std::vector<std::string>> gather(std::string mine) override {
    std::vector<std::string> all(static_cast<size_t>(count()));
    if (rank() != 0) {
      NEREID_TRY_STATUS(send_text(hub(), mine, 0));
      for (auto& text : all) NEREID_TRY_STATUS(receive_text(hub(), text, 0));
      return all;
    }
    all[0] = std::move(mine);
    for (int64_t r = 1; r < count(); ++r)
      NEREID_TRY_STATUS(receive_text(to(r), all[static_cast<size_t>(r)], r));
    for (int64_t r = 1; r < count(); ++r)
      for (const auto& text : all) NEREID_TRY_STATUS(send_text(to(r), text, r));
    return all;
  }

  Status sum_to_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) override {
    const auto part = [&](int64_t r) {
      return flat.slice(0, borders[static_cast<size_t>(r)], borders[static_cast<size_t>(r) + 1]);
    };
    if (rank() != 0) {
      NEREID_TRY_STATUS(send_all(hub(), flat.const_data_ptr(), flat.nbytes(), 0));
      return receive_all(hub(), part(rank()).data_ptr(), part(rank()).nbytes(), 0);
    }
    at::Tensor others = at::empty_like(flat);
    for (int64_t r = 1; r < count(); ++r) {
      NEREID_TRY_STATUS(receive_all(to(r), others.data_ptr(), others.nbytes(), r));
      flat.add_(others);
    }
    for (int64_t r = 1; r < count(); ++r)
      NEREID_TRY_STATUS(send_all(to(r), part(r).const_data_ptr(), part(r).nbytes(), r));
    return ok_status();
  }

  Status share_from_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) override {
    const auto part = [&](int64_t r) {
      return flat.slice(0, borders[static_cast<size_t>(r)], borders[static_cast<size_t>(r) + 1]);
    };
    if (rank() != 0) {
      NEREID_TRY_STATUS(send_all(hub(), part(rank()).const_data_ptr(), part(rank()).nbytes(), 0));
      return receive_all(hub(), flat.data_ptr(), flat.nbytes(), 0);
    }
    for (int64_t r = 1; r < count(); ++r)
      NEREID_TRY_STATUS(receive_all(to(r), part(r).data_ptr(), part(r).nbytes(), r));
    for (int64_t r = 1; r < count(); ++r)
      NEREID_TRY_STATUS(send_all(to(r), flat.const_data_ptr(), flat.nbytes(), r));
    return ok_status();
  }

  // Rank 0's bytes to all.
  Status send_to_all(void* bytes, size_t size) {
    if (rank() != 0) return receive_all(hub(), bytes, size, 0);
    for (int64_t r = 1; r < count(); ++r) NEREID_TRY_STATUS(send_all(to(r), bytes, size, r));
    return ok_status();
  }

 private:
  int hub() const { return link_.sockets[0].get(); }
  int to(int64_t rank) const { return link_.sockets[static_cast<size_t>(rank)].get(); }
  RankLink link_;
};

class GpuRanks final : public SocketRanks {
 public:
  static Result<std::unique_ptr<Ranks>> create(RankLink link, at::Device device) {
    auto ranks = std::unique_ptr<GpuRanks>(new GpuRanks(std::move(link)));
    NcclId id{};
    if (ranks->rank() == 0) {
      NEREID_TRY(id, Nccl::new_id());
    }
    NEREID_TRY_STATUS(ranks->send_to_all(&id, sizeof id));
    NEREID_TRY(auto nccl, Nccl::join(id, ranks->rank(), ranks->count(), device));
    ranks->nccl_.emplace(std::move(nccl));
    return std::unique_ptr<Ranks>(std::move(ranks));
  }
  Status sum_to_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) override {
    return nccl_->sum_to_owners(flat, borders);
  }
  Status share_from_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) override {
    return nccl_->share_from_owners(flat, borders);
  }

 private:
  using SocketRanks::SocketRanks;
  std::optional<Nccl> nccl_;
};

// What a rank sends the launcher at its end: nothing, or a byte for the blame and a message.
std::string message_of(const Status& status) {
  return status.ok()
             ? ""
             : static_cast<char>('0' + static_cast<int>(status.error().blame)) + status.error().message;
}

struct Child {
  pid_t pid = -1;
  Fd status_pipe;  // the reading end
  std::string text;
  int status = 0;
  bool ended = false, killed = false;  // killed: by us
};

[[noreturn]] void run_rank(RankLink link, Fd report, const std::function<Status(RankLink)>& body) {
  const int64_t rank = link.rank;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Status status = ok_status();
  try {
    status = body(std::move(link));
  } catch (const std::exception& e) {
    const std::string what = e.what();
    status = our_error("rank {}: unexpected: {}", rank, what.substr(0, what.find('\n')));
  }
  const std::string text = message_of(status);
  (void)!::write(report.get(), text.data(), text.size());
  std::fflush(stdout);
  ::_exit(status.ok() ? 0 : 1);
}

class Launcher {
 public:
  Status start(int64_t count, const std::function<Status(RankLink)>& body) {
    std::vector<Fd> hub(static_cast<size_t>(count)), others(static_cast<size_t>(count));
    for (size_t r = 1; r < hub.size(); ++r) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return our_error("cannot make a socket pair: {}", std::strerror(errno));
      hub[r] = Fd(pair[0]), others[r] = Fd(pair[1]);
    }
    for (int64_t rank = 0; rank < count; ++rank) {
      int pipe[2];
      if (::pipe2(pipe, O_CLOEXEC) != 0) return our_error("cannot make a pipe: {}", std::strerror(errno));
      Fd reading(pipe[0]), writing(pipe[1]);
      const pid_t pid = ::fork();
      if (pid < 0) return our_error("cannot fork: {}", std::strerror(errno));
      if (pid == 0) {
        // Each keeps its own ends alone: so the others see the end of one that is gone.
        RankLink link{.rank = rank, .count = count, .sockets = {}};
        if (rank == 0) {
          link.sockets = std::move(hub);
          others.clear();
        } else {
          link.sockets.push_back(std::move(others[static_cast<size_t>(rank)]));
          hub.clear(), others.clear();
        }
        children_.clear();
        reading.reset();
        run_rank(std::move(link), std::move(writing), body);
      }
      children_.push_back({.pid = pid, .status_pipe = std::move(reading), .text = {}});
    }
    return ok_status();
  }

  // Until all have ended.
  Status wait() {
    std::optional<Deadline> grace;
    for (size_t left = children_.size(); left > 0;) {
      bool any = false;
      for (Child& child : children_) {
        if (child.ended || ::waitpid(child.pid, &child.status, WNOHANG) != child.pid) continue;
        child.ended = any = true;
        --left;
        if (child.status != 0 && !grace) grace = Deadline::after(kGraceSeconds);
      }
      if (grace && grace->passed()) kill_all();
      if (interrupted()) pass_on();
      if (!any) ::poll(nullptr, 0, 20);
    }
    return first_cause();
  }

  // An interrupt may have come to this process alone, as from a scheduler; ranks stop together, after a
  // step.
  void pass_on() {
    if (std::exchange(passed_on_, true)) return;
    for (const Child& child : children_)
      if (!child.ended) pass_on_interrupt(child.pid);
  }

  void kill_all() {
    for (Child& child : children_)
      if (!child.ended && !child.killed) ::kill(child.pid, SIGKILL), child.killed = true;
  }

 private:
  Status first_cause() {
    for (size_t r = 0; r < children_.size(); ++r) {
      const Child& child = children_[r];
      if (WIFSIGNALED(child.status) && !child.killed)
        return our_error("rank {} was killed by signal {} ({}); the others were stopped", r,
                         WTERMSIG(child.status), ::strsignal(WTERMSIG(child.status)));
    }
    std::optional<Error> consequence;
    for (size_t r = 0; r < children_.size(); ++r) {
      Child& child = children_[r];
      char bytes[4096];
      for (ssize_t got; (got = ::read(child.status_pipe.get(), bytes, sizeof bytes)) > 0;)
        child.text.append(bytes, static_cast<size_t>(got));
      if (child.status == 0) continue;
      const Error error = child.text.empty()
                              ? our_error("rank {} ended without a word", r)
                              : Error{child.text.substr(1), static_cast<Blame>(child.text[0] - '0')};
      if (!error.message.ends_with(kEndedUnexpectedly) && !child.text.empty()) return error;
      if (!consequence) consequence = error;
    }
    return consequence ? Status(*consequence) : ok_status();
  }

  std::vector<Child> children_;
  bool passed_on_ = false;
};

}  // namespace

Result<std::unique_ptr<Ranks>> connect_ranks(RankLink link, at::Device device) {
  if (device.is_cuda()) return GpuRanks::create(std::move(link), device);
  return std::unique_ptr<Ranks>(std::make_unique<SocketRanks>(std::move(link)));
}

Status launch_ranks(int64_t count, const std::function<Status(RankLink)>& body) {
  Launcher launcher;
  if (auto started = launcher.start(count, body); !started.ok()) {
    launcher.kill_all();
    (void)launcher.wait();
    return started;
  }
  return launcher.wait();
}

}  // namespace nereid::train
