// Ctrl-C and kill: noted by a handler, asked about by whoever waits.
#pragma once

namespace nereid {

// SIGINT and SIGTERM set a flag and make `interrupt_fd()` readable; a second SIGINT ends the process at once.
void watch_for_interrupts();
bool interrupted();
int interrupt_fd();  // for poll(); never read from it

}  // namespace nereid
