// Ctrl-C and kill: noted by a handler, checked by code that waits.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace nereid {

// SIGINT and SIGTERM set a flag and make `interrupt_fd()` readable; a second one ends the process at once,
// but for one that was passed on.
void watch_for_interrupts();
// Passes our own interrupt on to a process that we forked. One that got the same Ctrl-C from a terminal is
// not ended by this.
void pass_on_interrupt(pid_t child);
bool interrupted();
int interrupt_fd();  // for poll(); never read from it

// From now on an interrupt ends this process at the latest `seconds` later, with exit code 130 and `message`
// on stderr, wherever its threads are: for commands that keep every result as soon as it is there. Children
// with a KilledAtExit end with it. To be called once, after watch_for_interrupts.
void end_soon_after_interrupt(double seconds, const std::string& message);

// While it lives, `child` is killed where an interrupt ends this process without running destructors. A child
// that waits for its end of a socket to close needs this too: one that is stopped or busy does not see it,
// and holds our stderr open. Reset it before the child is waited for: then its number may be another
// process's. At most 256 children at a time; the rest are not killed.
class KilledAtExit {
 public:
  KilledAtExit() = default;
  explicit KilledAtExit(pid_t child);
  ~KilledAtExit() { reset(); }
  KilledAtExit(KilledAtExit&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
  KilledAtExit& operator=(KilledAtExit&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  void reset();

 private:
  int slot_ = -1;
};

}  // namespace nereid
