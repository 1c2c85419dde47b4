#include "nereid/base/program/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "nereid/base/program/exit_on_interrupt.h"

namespace nereid {
namespace {

std::atomic<bool> noted{false}, own{false};  // at all; by a signal of ours
int pipe_ends[2] = {-1, -1};

std::atomic<int> at_once{0};  // ExitOnInterrupt that live

constexpr int kForwardedSignal = SIGUSR1;

std::array<std::atomic<pid_t>, 256> children{};  // of KilledAtExit; 0: free

// Safe in a signal handler.
[[noreturn]] void end_now() {
  for (auto& child : children)
    if (const pid_t pid = child; pid > 0) ::kill(pid, SIGKILL);
  ::_exit(130);
}

[[noreturn]] void end_interrupted() {
  constexpr std::string_view kLine = "nereid: interrupted\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  end_now();
}

void note(int signal) {
  if (at_once > 0) end_interrupted();
  // What was passed on may be delivered before the signal that our parent and we had at once.
  if (signal != kForwardedSignal && own.exchange(true)) end_now();
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
  ::sigaction(kForwardedSignal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void pass_on_interrupt(pid_t child) { ::kill(child, kForwardedSignal); }
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
    end_now();
  }).detach();
}

ExitOnInterrupt::ExitOnInterrupt() {
  ++at_once;
  if (noted) end_interrupted();
}

ExitOnInterrupt::~ExitOnInterrupt() { --at_once; }

KilledAtExit::KilledAtExit(pid_t child) {
  for (size_t i = 0; i < children.size() && slot_ < 0; ++i) {
    pid_t free = 0;
    if (children[i].compare_exchange_strong(free, child)) slot_ = static_cast<int>(i);
  }
}

void KilledAtExit::reset() {
  if (slot_ >= 0) children[static_cast<size_t>(slot_)] = 0;
  slot_ = -1;
}

}  // namespace nereid
