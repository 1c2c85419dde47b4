#include "nereid/serve/judge_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "nereid/base/deadline.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/sandbox/zygote/worker_pool.h"

namespace nereid::serve {
namespace {

constexpr size_t kLongestSaid = 2000;
constexpr double kSecondsToEnd = 5;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("it was ended by signal {}", WTERMSIG(status));
  return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

bool is_report(std::string_view line) { return line.starts_with("{\"fleet\":"); }

Result<std::unique_ptr<JudgeProcess>> JudgeProcess::start(JudgeSpec spec, Events events) {
  std::unique_ptr<JudgeProcess> judge(new JudgeProcess(std::move(spec), std::move(events)));
  judge->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!judge->wake_.valid()) return our_error("eventfd: {}", std::strerror(errno));
  NEREID_TRY_STATUS(judge->start_program());
  judge->thread_ = std::thread([raw = judge.get()] { raw->work(); });
  return judge;
}

JudgeProcess::~JudgeProcess() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  (void)::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  kill_program();
}

void JudgeProcess::ask(uint64_t generation, std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return;
    asked_ += line + "\n";
    ++requested_lines_;
  }
  (void)::eventfd_write(wake_.get(), 1);
}

int JudgeProcess::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

Status JudgeProcess::start_program() {
  int ends[3][2];
  for (auto& pair : ends)
    if (::pipe2(pair, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  const Fd child_in(ends[0][0]), child_out(ends[1][1]), child_errors(ends[2][1]);
  to_ = Fd(ends[0][1]), from_ = Fd(ends[1][0]), errors_ = Fd(ends[2][0]);
  for (const Fd* ours : {&to_, &from_, &errors_}) (void)::fcntl(ours->get(), F_SETFL, O_NONBLOCK);
  outgoing_.clear(), incoming_.clear(), said_.clear();
  under_way_ = lines_ = 0;
  NEREID_TRY(
      const pid_t pid,
      sandbox::spawn({.words = spec_.words,
                      .environment = spec_.environment,
                      .descriptors = {{child_in.get(), 0}, {child_out.get(), 1}, {child_errors.get(), 2}},
                      .own_session = true}));
  const std::lock_guard lock(mutex_);
  pid_ = pid;
  killed_at_exit_ = KilledAtExit(pid);
  ++generation_;
  asked_.clear();
  requested_lines_ = 0;
  return ok_status();
}

void JudgeProcess::kill_program() {
  const std::lock_guard lock(mutex_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  killed_at_exit_.reset();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  if (said_.empty()) said_ = how_it_ended(status);
}

// By itself, for nothing more comes: where it is idle, and workers are to be kept warm for the next command;
// and a fleet, whose judges are not its children.
void JudgeProcess::begin_shutdown() {
  const bool idle = under_way_ == 0 && outgoing_.empty();
  if (!spec_.fleet && (!idle || sandbox::seconds_kept_warm() == 0)) return;
  to_.reset();
  const Deadline patience = Deadline::after(kSecondsToEnd);
  char bytes[4096];
  for (;;) {
    pollfd closed{from_.get(), POLLIN, 0};
    const int ready = ::poll(&closed, 1, patience.poll_milliseconds());
    if (ready == 0 || (ready > 0 && ::read(from_.get(), bytes, sizeof bytes) == 0)) return;
  }
}

void JudgeProcess::work() {
  for (int deaths_in_a_row = 0;;) {
    while (exchange()) continue;
    if (lines_ > 0) deaths_in_a_row = 0;
    uint64_t generation = 0;
    bool ending = false;
    {
      const std::lock_guard lock(mutex_);
      ending = ending_;
      generation = generation_;
    }
    if (ending) return begin_shutdown();
    kill_program();
    events_.on_death(generation, said_);
    do {
      if (!wait_for_next_start(deaths_in_a_row++)) return;
    } while (!start_program().ok());
    events_.on_start(generation + 1);
  }
}

// At once the first time, then later and later. False: it is to end.
bool JudgeProcess::wait_for_next_start(int deaths_in_a_row) {
  const double seconds = deaths_in_a_row == 0 ? 0
                                              : std::min(spec_.max_seconds_between,
                                                         0.25 * std::pow(2, std::min(deaths_in_a_row, 20)));
  const Deadline until = Deadline::after(seconds);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return false;
    }
    if (until.passed()) return true;
    pollfd one{wake_.get(), POLLIN, 0};
    (void)::poll(&one, 1, until.poll_milliseconds());
    eventfd_t count = 0;
    (void)::eventfd_read(wake_.get(), &count);
  }
}

// Waits for something to happen, and does it. False: the process is gone, silent for too long, or to end.
bool JudgeProcess::exchange() {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    outgoing_ += asked_;
    under_way_ += requested_lines_;
    asked_.clear();
    requested_lines_ = 0;
  }
  pollfd all[4] = {{from_.get(), POLLIN, 0},
                   {wake_.get(), POLLIN, 0},
                   {outgoing_.empty() ? -1 : to_.get(), POLLOUT, 0},
                   {errors_.get(), POLLIN, 0}};
  const int patience = Deadline::after(spec_.patience).poll_milliseconds();
  const int ready = ::poll(all, 4, under_way_ == 0 ? -1 : patience);
  if (ready < 0) return errno == EINTR;
  if (ready == 0) {
    said_ = fmt::format("it said nothing for {:g} s", spec_.patience);
    return false;
  }
  if (all[1].revents != 0) {
    eventfd_t count = 0;
    (void)::eventfd_read(wake_.get(), &count);
  }
  if (all[3].revents != 0) {
    char bytes[4096];
    const ssize_t got = ::read(errors_.get(), bytes, sizeof bytes);
    if (got > 0) said_.append(bytes, static_cast<size_t>(got));
    if (said_.size() > kLongestSaid) said_.erase(0, said_.size() - kLongestSaid);
    if (got == 0) errors_.reset();
  }
  if (all[2].revents != 0) {
    const ssize_t sent = ::write(to_.get(), outgoing_.data(), outgoing_.size());
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return false;
    outgoing_.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  if (all[0].revents == 0) return true;
  char bytes[1 << 16];
  const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  incoming_.append(bytes, static_cast<size_t>(got));
  read_lines();
  return got > 0;
}

void JudgeProcess::read_lines() {
  size_t from = 0;
  for (size_t end; (end = incoming_.find('\n', from)) != incoming_.npos; from = end + 1) {
    std::string line = incoming_.substr(from, end - from);
    ++lines_;
    if (!is_report(line)) under_way_ -= std::min<size_t>(under_way_, 1);
    uint64_t generation = 0;
    {
      const std::lock_guard lock(mutex_);
      generation = generation_;
    }
    events_.on_line(generation, std::move(line));
  }
  incoming_.erase(0, from);
}

}  // namespace nereid::serve
