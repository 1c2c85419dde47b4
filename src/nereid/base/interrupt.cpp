#include "nereid/base/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace nereid {
namespace {

std::atomic<bool> noted{false}, own{false};  // at all; by a signal of ours
int pipe_ends[2] = {-1, -1};

constexpr int kPassedOn = SIGUSR1;

void note(int signal) {
  // What was passed on may be delivered before the signal that our parent and we had at once.
  if (signal != kPassedOn && own.exchange(true)) ::_exit(130);
  if (noted.exchange(true)) return;
  const char byte = 0;
  [[maybe_unused]] auto written = ::write(pipe_ends[1], &byte, 1);
}

}  // namespace

void watch_for_interrupts() {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action{};
  action.sa_handler = note;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(kPassedOn, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void pass_on_interrupt(pid_t child) { ::kill(child, kPassedOn); }
bool interrupted() { return noted; }
int interrupt_fd() { return pipe_ends[0]; }

void end_soon_after_interrupt(double seconds, const std::string& message) {
  // Outlives main's end: it waits for what may never come, and owns what it needs.
  std::thread([seconds, message] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pollfd one{pipe_ends[0], POLLIN, 0};
    while (::poll(&one, 1, -1) <= 0) continue;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const std::string line = "nereid: " + message + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(130);
  }).detach();
}

}  // namespace nereid
