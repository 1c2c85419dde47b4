// Ctrl-C and kill: noted by a handler, asked about by whoever waits.
#pragma once

#include <sys/types.h>

namespace nereid {

// SIGINT and SIGTERM set a flag and make `interrupt_fd()` readable; a second one ends the process at once, but for one that was passed on.
void watch_for_interrupts();
// Tells a process that we forked about our own interrupt. It may know already, as of a Ctrl-C in a terminal: it is not ended by this.
void pass_on_interrupt(pid_t child);
bool interrupted();
int interrupt_fd();  // for poll(); never read from it

}  // namespace nereid
