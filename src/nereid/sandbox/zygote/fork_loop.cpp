#include "nereid/sandbox/zygote/fork_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "nereid/sandbox/jail/failure.h"

namespace nereid::sandbox {
namespace {

constexpr int kStepsBeforeAFork = 2;  // of compaction, where there is no time left over for it

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

// One order and the descriptors that came with it; false when the other end is closed.
bool receive(int socket, Order& order, int (&descriptors)[2]) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  iovec piece{&order, sizeof order};
  msghdr message{};
  message.msg_iov = &piece, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  ssize_t got;
  while ((got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  descriptors[0] = descriptors[1] = -1;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
      memcpy(descriptors, CMSG_DATA(header), std::min(sizeof descriptors, header->cmsg_len - CMSG_LEN(0)));
  return got == sizeof order;
}

double seconds_on(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// `schedstat`: /proc/self/schedstat, opened before the jail, or -1. Its second number, in nanoseconds, is the
// wait.
Entry entry_now(int schedstat) {
  Entry entry{.at = seconds_on(CLOCK_MONOTONIC), .processor = seconds_on(CLOCK_PROCESS_CPUTIME_ID)};
  char text[128] = {};
  unsigned long long ran = 0, waited = 0;
  if (schedstat >= 0 && ::read(schedstat, text, sizeof text - 1) > 0 &&
      ::sscanf(text, "%llu %llu", &ran, &waited) == 2)
    entry.waited = 1e-9 * static_cast<double>(waited);
  return entry;
}

void set_child_signals(int how) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  ::sigprocmask(how, &children, nullptr);
}

}  // namespace

ForkLoop::ForkLoop(const Jail& jail, Compaction& compaction, int control, std::string folder,
                   Interpreter interpreter)
    : jail_(jail),
      compaction_(compaction),
      control_(control),
      folder_(std::move(folder)),
      interpreter_(interpreter) {
  CPU_ZERO(&cores_);
  if (::sched_getaffinity(0, sizeof cores_, &cores_) != 0) CPU_ZERO(&cores_);
}

Result<bool> ForkLoop::run(Child& child) {
  // Deaths are heard of while the loop waits and at no other time.
  struct sigaction awake{};
  awake.sa_handler = [](int) {};
  awake.sa_flags = SA_NOCLDSTOP;
  ::sigaction(SIGCHLD, &awake, nullptr);
  set_child_signals(SIG_BLOCK);
  while (wait_for_order()) {
    Order order;
    int descriptors[2];
    if (!receive(control_, order, descriptors)) return false;
    child = {descriptors[0], descriptors[1]};
    Result<bool> is_child = false;
    if (order.what == Order::kRun) is_child = fork_child(order.child, child);
    if (order.what == Order::kKill) kill_child(order.child);
    if (order.what == Order::kStatus) reply_status(order.child);
    if (!is_child.ok() || *is_child) return is_child;
    for (const int fd : descriptors)
      if (fd >= 0) ::close(fd);
  }
  return failure("poll");
}

// Compacts while there is nothing else to do; false: it cannot wait.
bool ForkLoop::wait_for_order() {
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  sigdelset(&mask, SIGCHLD);
  for (;;) {
    pollfd order{control_, POLLIN, 0};
    const timespec none{};
    const int ready = ::ppoll(&order, 1, compact_ ? &none : nullptr, &mask);
    if (ready < 0 && errno != EINTR) return false;
    reap_children();
    if (ready > 0) return true;
    if (ready == 0) compact_ = compaction_.step();
  }
}

std::string ForkLoop::folder_of(uint64_t number) const {
  return folder_.empty() ? std::string() : folder_ + "/" + std::to_string(number);
}

Result<bool> ForkLoop::fork_child(uint64_t number, Child& child) {
  if (++forks_ == kForksBeforeCompaction) compact_ = true;
  for (int i = 0; compact_ && i < kStepsBeforeAFork; ++i) compact_ = compaction_.step();
  if (child.answer < 0) return our_error("an order to run came without its descriptors");
  if (count_ == children_.size()) return our_error("more than {} children at once", children_.size());
  if (!folder_.empty() && ::mkdir(folder_of(number).c_str(), 0700) != 0) return failure("mkdir");
  int said[2];
  if (::pipe2(said, O_CLOEXEC) != 0) return failure("pipe");
  NEREID_TRY_STATUS(jail_.before_fork());
  if (interpreter_.before != nullptr) interpreter_.before();
  const int core = least_used_core();
  const pid_t pid = ::fork();
  if (auto* callback = pid == 0 ? interpreter_.after_in_child : interpreter_.after_in_parent) callback();
  if (pid < 0) return failure("fork");
  if (pid == 0) {
    run_child(number, child, said[1], core);
    return true;
  }
  ::close(said[1]);
  ::fcntl(said[0], F_SETFL, O_NONBLOCK);
  children_[count_++] = {.pid = pid, .said = said[0], .number = number, .core = core, .entry = {}};
  NEREID_TRY_STATUS(jail_.after_fork());
  return false;
}

// A child gets a core, not all of them: threads that it starts take nothing from its neighbours. In the jail
// it cannot choose another.
void ForkLoop::run_child(uint64_t number, const Child& child, int says, int core) {
  if (core >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(core), &one);
    (void)::sched_setaffinity(0, sizeof one, &one);  // where it is not allowed, shares are as they are
  }
  ::signal(SIGCHLD, SIG_DFL);
  set_child_signals(SIG_UNBLOCK);
  std::vector<int> kept = {child.request, child.answer, says};
  const int schedstat = ::open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  if (schedstat >= 0) kept.push_back(schedstat);
  const Status entered = jail_.enter(kept, folder_of(number));
  const Entry entry = entry_now(schedstat);
  char word[1 + sizeof entry] = {'+'};
  memcpy(word + 1, &entry, sizeof entry);
  const std::string why = entered.ok() ? "" : entered.error().message;
  const ssize_t written =
      entered.ok() ? ::write(says, word, sizeof word) : ::write(says, why.data(), why.size());
  if (!entered.ok() || written != sizeof word) ::_exit(1);
  if (schedstat >= 0) ::close(schedstat);
  ::close(says);
}

// The core that the fewest living children are held to; among equals each in its turn.
int ForkLoop::least_used_core() {
  if (CPU_COUNT(&cores_) < 2) return -1;
  int best = -1;
  size_t fewest = kMaxChildren + 1;
  for (int step = 1; step <= CPU_SETSIZE; ++step) {
    const int core = (last_core_ + step) % CPU_SETSIZE;
    if (!CPU_ISSET(static_cast<size_t>(core), &cores_)) continue;
    size_t held = 0;
    for (size_t i = 0; i < count_; ++i) held += children_[i].core == core ? 1 : 0;
    if (held < fewest) fewest = held, best = core;
  }
  return last_core_ = best;
}

void ForkLoop::reply_status(uint64_t number) {
  int process = -1;
  StatusReply reply{.child = number, .entry = {}};
  for (size_t i = 0; i < count_; ++i) {
    Running& child = children_[i];
    if (child.number != number) continue;
    process = static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0));
    char word[1 + sizeof child.entry];
    if (!child.entered && ::read(child.said, word, sizeof word) == sizeof word && word[0] == '+') {
      memcpy(&child.entry, word + 1, sizeof child.entry);
      child.entered = true;
    }
    reply.entered = child.entered ? 1 : 0, reply.entry = child.entry;
  }
  iovec piece{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof process)] = {};
  msghdr message{};
  message.msg_iov = &piece, message.msg_iovlen = 1;
  if (process >= 0) {
    message.msg_control = control, message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof process);
    memcpy(CMSG_DATA(header), &process, sizeof process);
  }
  (void)::sendmsg(control_, &message, MSG_NOSIGNAL);  // a peer that does not listen is gone
  if (process >= 0) ::close(process);
}

void ForkLoop::kill_child(uint64_t number) const {
  for (size_t i = 0; i < count_; ++i) {
    const Running& child = children_[i];
    if (child.number != number) continue;
    // Number 1 of its pid namespace takes everything with it; without one the child leads a process group
    // that the jail does not let anybody leave. It may not have made that group yet.
    ::kill(child.pid, SIGKILL);
    if (!jail_.isolation().pid) ::killpg(child.pid, SIGKILL);
  }
}

void ForkLoop::reap_children() {
  int status = 0;
  rusage used{};
  for (pid_t pid; (pid = ::wait4(-1, &status, WNOHANG, &used)) > 0;) {
    const auto end = children_.begin() + count_;
    const auto child = std::find_if(children_.begin(), end, [&](const Running& c) { return c.pid == pid; });
    if (child == end) continue;
    if (!jail_.isolation().pid) ::killpg(pid, SIGKILL);
    ChildExit note{.child = child->number, .status = status};
    note.cpu = seconds(used.ru_utime) + seconds(used.ru_stime);
    const ssize_t got = child->entered ? 0 : ::read(child->said, note.why, sizeof note.why - 1);
    note.entered = child->entered || (got == 1 + sizeof(Entry) && note.why[0] == '+') ? 1 : 0;
    if (note.entered != 0)
      note.why[0] = '\0';
    else if (got <= 0)
      ::strcpy(note.why, "it died on the way into the jail");
    ::close(child->said);
    if (!folder_.empty()) {
      std::error_code nothing_lost;
      std::filesystem::remove_all(folder_of(child->number), nothing_lost);
    }
    *child = children_[--count_];
    (void)::send(control_, &note, sizeof note, MSG_NOSIGNAL);  // a peer that does not listen is gone
  }
}

}  // namespace nereid::sandbox
