#include "nereid/sandbox/zygote/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "nereid/base/program/interrupt.h"
#include "nereid/sandbox/zygote/channel.h"
#include "nereid/sandbox/zygote/process_times.h"
#include "nereid/sandbox/zygote/zygote_process.h"

namespace nereid::sandbox {
namespace {

// For a killed child to be gone, before its zygote counts as lost: on a busy machine it waits for its turn to
// die.
constexpr double kKillTimeoutSeconds = 60;
constexpr int kMaxLateReads =
    1 << 13;  // of an answer that was begun in time: the largest, in pieces of a pipe
constexpr double kFirstPollSeconds = 0.05;  // seconds between two looks at what a late child has had
constexpr double kSecondsToEnter = 60;      // its jail, which a loaded machine may delay

// The answer as it comes through the pipe: 8 bytes of length, then as many.
class AnswerReader {
 public:
  enum class State { kIncomplete, kComplete, kTooLarge, kCut };
  explicit AnswerReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  State read_some(int fd) {
    if (length_known()) buffer_.resize(filled_ + std::min<size_t>(size_t{1} << 20, 8 + length() - filled_));
    const ssize_t got = ::read(fd, buffer_.data() + filled_, buffer_.size() - filled_);
    if (got < 0 && errno == EINTR) return State::kIncomplete;
    if (got <= 0) return State::kCut;
    filled_ += static_cast<size_t>(got);
    if (!length_known()) return State::kIncomplete;
    if (length() > max_bytes_) return State::kTooLarge;
    return filled_ == 8 + length() ? State::kComplete : State::kIncomplete;
  }
  std::string take() { return buffer_.substr(8); }

 private:
  bool length_known() const { return filled_ >= 8; }
  uint64_t length() const {
    uint64_t value = 0;
    for (int i = 7; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(buffer_[static_cast<size_t>(i)]);
    return value;
  }

  size_t max_bytes_, filled_ = 0;
  std::string buffer_ = std::string(8, '\0');
};

// As CLOCK_MONOTONIC counts, which is what an Entry has.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Error passed(const Deadline& deadline, const std::string& module) {
  return our_error(
      "the {} worker did not answer within {}", module,
      deadline.owner() == LimitOwner::kCaller ? "the caller's budget" : "the time that we wait for it");
}

// `exit.status` as waitpid gives it. Number 1 of a pid namespace is spared all signals but SIGKILL and those
// of its own faults, so SIGXCPU may not be what ends it.
Outcome killed_by(const ZygoteProcess::Exit& exit, const Limits& limits) {
  const int status = exit.status;
  if (WIFEXITED(status))
    return Killed{.limit = fmt::format("it ended with status {} and no answer", WEXITSTATUS(status))};
  switch (const int signal = WTERMSIG(status)) {
    case SIGKILL:
      if (exit.cpu + 1 < static_cast<double>(limits.cpu_seconds))
        return Killed{.limit = "it was killed: out of memory", .by_force = true};
      [[fallthrough]];
    case SIGXCPU:
      return OutOfTime{static_cast<double>(limits.cpu_seconds)};
    case SIGXFSZ:
      return Killed{.limit = "it wrote too large a file"};
    case SIGSYS:
      return Killed{.limit = "it made a forbidden system call"};
    default:
      return Killed{.limit = fmt::format("it died of signal {} ({})", signal, strsignal(signal))};
  }
}

class RealZygote : public Zygote {
 public:
  explicit RealZygote(ZygoteOptions options) : options_(std::move(options)) {
    if (options_.children <= 0)
      options_.children = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    free_ = options_.children;
  }

  Status open() {
    NEREID_TRY(home_, query_python_home(options_.installation.python, Deadline::after(60)));
    if (options_.at_once) {
      NEREID_TRY(process_, ZygoteProcess::start(options_, home_));
    }
    return ok_status();
  }

  Result<Outcome> run(std::string_view request, double seconds, Deadline deadline) override {
    NEREID_TRY_STATUS(take_place(deadline));
    auto outcome = run_in_place(request, seconds, deadline);
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    place_free_.notify_one();
    return outcome;
  }

  Result<Isolation> isolation(Deadline deadline) override {
    NEREID_TRY(auto process, living(deadline));
    NEREID_TRY(auto ready, process->wait_ready(deadline));
    return ready.isolation;
  }
  Result<std::string> about(Deadline deadline) override {
    NEREID_TRY(auto process, living(deadline));
    NEREID_TRY(auto ready, process->wait_ready(deadline));
    return ready.about;
  }
  int children() const override { return options_.children; }
  int launcher_pid() const override {
    const std::lock_guard lock(mutex_);
    return process_ ? process_->launcher() : 0;
  }

 private:
  Status take_place(Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (free_ == 0) {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      if (deadline.passed()) return our_error("no place in the {} worker was free in time", options_.module);
      place_free_.wait_for(lock, std::chrono::milliseconds(50));
    }
    --free_;
    return ok_status();
  }

  Result<Outcome> run_in_place(std::string_view request, double seconds, Deadline deadline) {
    NEREID_TRY(const Fd file, memory_file(request, "request"));
    std::string words;
    bool killed_before = false;  // apart from losses: the killer of a child may be about to kill its zygote
    for (int losses = 0; losses < 2;) {
      NEREID_TRY(auto process, living(deadline));
      const auto ready =
          process->wait_ready(Deadline::earlier(deadline, Deadline::after(options_.start_seconds)));
      words = process->last_words();
      if (!ready.ok() && !process->lost()) return ready.error();
      if (!ready.ok()) {
        words = ready.error().message;
        ++losses;
        continue;
      }
      if (!ready->isolation.enough() && !options_.accept_weak_isolation)
        return our_error("this kernel allows too few isolation layers for untrusted code: {}",
                         describe(ready->isolation));
      NEREID_TRY(auto outcome, ask(*process, file.get(), seconds, deadline));
      const auto* killed = outcome ? std::get_if<Killed>(&*outcome) : nullptr;
      if (killed != nullptr && killed->by_force) {
        if (!std::exchange(killed_before, true)) continue;
        // Number 1 of a pid namespace cannot kill itself, and memory within its limit is ours to provide.
        if (ready->isolation.pid)
          return our_error(
              "a child of the {} worker was killed twice from outside its jail: this machine may be short of "
              "memory",
              options_.module);
      }
      if (outcome) return std::move(*outcome);
      words = process->last_words();
      ++losses;
    }
    return our_error("the {} worker was lost twice: {}", options_.module, words);
  }

  // Nothing: the zygote, or the child before it ran anything, was lost on the way.
  Result<std::optional<Outcome>> ask(ZygoteProcess& process, int request, double seconds, Deadline deadline) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return our_error("pipe: {}", strerror(errno));
    const Fd answer(ends[0]);
    ::fcntl(answer.get(), F_SETPIPE_SZ,
            1 << 20);  // fewer turns for a large answer; its default size does as well
    Fd theirs(ends[1]);
    const auto child = process.submit(request, theirs.get());
    theirs.reset();
    if (!child) return std::optional<Outcome>();
    auto outcome = wait_for_outcome(process, *child, answer.get(), seconds, deadline);
    process.forget(*child);
    return outcome;
  }

  Result<std::optional<Outcome>> wait_for_outcome(ZygoteProcess& process, uint64_t child, int answer,
                                                  double seconds, Deadline deadline) {
    const Stopwatch watch;
    Deadline look = Deadline::after(seconds, LimitOwner::kCandidate);
    AnswerReader reader(options_.max_answer_bytes);
    int late_reads = 0;
    for (;;) {
      pollfd all[3] = {{answer, POLLIN, 0}, {process.lost_fd(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
      const int ready = ::poll(all, 3, Deadline::earlier(deadline, look).poll_milliseconds());
      if (ready < 0 && errno == EINTR) continue;
      if (all[2].revents != 0) {
        process.kill(child);
        return Error{"interrupted", Blame::kInterrupted};
      }
      // A child that never stops writing is late, too.
      if ((all[0].revents == 0 && all[1].revents == 0) || late_reads > kMaxLateReads) {
        if (deadline.passed()) {
          process.kill(child);
          return passed(deadline, options_.module);
        }
        if (!look.passed()) continue;
        NEREID_TRY(const double left, seconds_left(process, child, seconds, watch.seconds()));
        // What came while this thread waited for a processor itself was in time.
        pollfd rest{answer, POLLIN, 0};
        if (left <= 0 && late_reads <= kMaxLateReads && ::poll(&rest, 1, 0) > 0) continue;
        if (left <= 0) return stop(process, child, Outcome(OutOfTime{seconds}));
        look = Deadline::after(left, LimitOwner::kCandidate);
        continue;
      }
      if (look.passed()) ++late_reads;
      if (all[0].revents == 0) return std::optional<Outcome>();
      switch (reader.read_some(answer)) {
        case AnswerReader::State::kIncomplete:
          break;
        case AnswerReader::State::kComplete:
          return std::optional<Outcome>(Answer{reader.take()});
        case AnswerReader::State::kTooLarge:
          return stop(
              process, child,
              Killed{.limit = fmt::format("its answer was larger than {} bytes", options_.max_answer_bytes)});
        case AnswerReader::State::kCut:
          return how_it_ended(process, child, deadline, seconds, watch);
      }
    }
  }

  // Of the child's limit, when `wall` seconds are over since the request; 0: none. The limit begins when the
  // child is in its jail, and a loaded machine extends it.
  Result<double> seconds_left(ZygoteProcess& process, uint64_t child, double seconds, double wall) {
    const auto status = process.status_of(child);
    // Too busy to answer, or gone: then the pipe is about to say so.
    if (!status || !status->process.valid())
      return wall >= std::max(kMaxLimitExtension * seconds, kSecondsToEnter) ? 0 : kFirstPollSeconds;
    if (!status->entry) {
      if (wall < kSecondsToEnter) return kFirstPollSeconds;
      process.kill(child);
      return our_error("a child of the {} worker did not enter its jail within {} s", options_.module,
                       kSecondsToEnter);
    }
    const double at_work = std::min(wall, seconds_now() - status->entry->at);
    const pid_t pid = process_of(status->process);
    auto times = pid > 0 ? times_of(pid) : std::nullopt;
    if (times) times->processor -= status->entry->processor, times->waited -= status->entry->waited;
    const double left = seconds - seconds_at_work(at_work, times);
    if (left <= 0 || at_work >= kMaxLimitExtension * seconds) return 0;
    return std::clamp(left, kFirstPollSeconds, kMaxLimitExtension * seconds - at_work + kFirstPollSeconds);
  }

  Result<std::optional<Outcome>> stop(ZygoteProcess& process, uint64_t child, Outcome outcome) {
    process.kill(child);
    if (process.wait_for_exit(child, Deadline::after(kKillTimeoutSeconds)))
      return std::optional<Outcome>(std::move(outcome));
    if (process.lost()) return std::optional<Outcome>();
    return our_error("a child of the {} worker does not die", options_.module);
  }

  // The pipe was closed before a whole answer came: by dying, or by a child that lives on.
  Result<std::optional<Outcome>> how_it_ended(ZygoteProcess& process, uint64_t child, Deadline deadline,
                                              double seconds, const Stopwatch& watch) {
    std::optional<ZygoteProcess::Exit> exit;
    Deadline look = Deadline::after(std::max(0.0, seconds - watch.seconds()), LimitOwner::kCandidate);
    while (!(exit = process.wait_for_exit(child, Deadline::earlier(deadline, look)))) {
      if (process.lost()) return std::optional<Outcome>();
      if (interrupted() || deadline.passed()) {
        process.kill(child);
        return interrupted() ? Error{"interrupted", Blame::kInterrupted} : passed(deadline, options_.module);
      }
      NEREID_TRY(const double left, seconds_left(process, child, seconds, watch.seconds()));
      if (left <= 0) return stop(process, child, Outcome(OutOfTime{seconds}));
      look = Deadline::after(left, LimitOwner::kCandidate);
    }
    const bool killed = WIFSIGNALED(exit->status) && WTERMSIG(exit->status) == SIGKILL;
    if (!exit->entered && killed) return std::optional<Outcome>();
    if (!exit->entered) return our_error("a child could not enter its jail: {}", exit->why);
    return std::optional<Outcome>(killed_by(*exit, options_.limits));
  }

  Result<std::shared_ptr<ZygoteProcess>> living(Deadline deadline) {
    std::shared_ptr<ZygoteProcess> old;  // goes after the lock does, since going takes a while
    const std::lock_guard lock(mutex_);
    if (process_ && !process_->lost()) return process_;
    if (deadline.passed())
      return our_error("the {} worker was lost, and no time is left for another", options_.module);
    old = std::move(process_);
    NEREID_TRY(process_, ZygoteProcess::start(options_, home_));
    return process_;
  }

  ZygoteOptions options_;
  PythonHome home_;
  mutable std::mutex mutex_;
  std::condition_variable place_free_;
  int free_ = 0;
  std::shared_ptr<ZygoteProcess> process_;
};

}  // namespace

Result<std::unique_ptr<Zygote>> Zygote::start(ZygoteOptions options) {
  auto zygote = std::make_unique<RealZygote>(std::move(options));
  NEREID_TRY_STATUS(zygote->open());
  return std::unique_ptr<Zygote>(std::move(zygote));
}

}  // namespace nereid::sandbox
