#include "nereid/base/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace nereid {
namespace {

std::atomic<bool> noted{false};
int pipe_ends[2] = {-1, -1};

void note(int) {
  if (noted.exchange(true)) ::_exit(130);
  const char byte = 0;
  [[maybe_unused]] auto written = ::write(pipe_ends[1], &byte, 1);
}

}  // namespace

void watch_for_interrupts() {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action {};
  action.sa_handler = note;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return noted; }
int interrupt_fd() { return pipe_ends[0]; }

}  // namespace nereid
