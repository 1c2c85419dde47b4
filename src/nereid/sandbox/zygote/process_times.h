// What a process has had of the machine's time, for limits that a loaded machine must not shorten.
#pragma once

#include <sys/types.h>

#include <optional>

#include "nereid/base/file.h"

namespace nereid::sandbox {

struct ProcessTimes {
  double processor = 0;  // seconds that its threads and the processes below it have computed
  double waited =
      0;  // seconds in which its first thread, or a process below it, could have run and no core was free
};

// Nothing where the process is gone or the kernel keeps no such figures.
std::optional<ProcessTimes> times_of(pid_t process);
// The process that a pidfd stands for, as this process numbers it; 0 where it is gone or /proc does not say.
pid_t process_of(const Fd& pidfd);

// How long a candidate's process has been at its work: wall time less what it waited for a processor, and at
// least what it computed itself, on one core. Without figures the wall time.
double seconds_at_work(double wall, const std::optional<ProcessTimes>& times);

}  // namespace nereid::sandbox
