// Warm workers that wait for the next command. Importing torch takes seconds, a trace tens of milliseconds:
// with NEREID_KEEP_WARM=SECONDS in its environment a command that ends leaves its idle workers to the program
// `nereid-worker-pool`, and the next command that wants the same worker takes it from there. A worker that is
// not taken ends after SECONDS, and the worker pool when it keeps nothing.
//
// The worker pool listens in a folder that only its user may enter ($XDG_RUNTIME_DIR/nereid or
// /tmp/nereid-UID). Never kept: a worker with children, one of a command that was interrupted, one that is
// lost.
#pragma once

#include <optional>
#include <string>

#include "nereid/base/file.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"

namespace nereid::sandbox {

// All that a command holds of a living zygote.
struct WarmWorker {
  Fd control = {}, lifeline = {}, errors = {};  // see zygote_process.h
  Fd process = {};                              // of its launcher, as pidfd_open gives it
  int launcher = 0;                             // its process id
  uint64_t next_child = 1;                      // the first number that it has not had
  std::string ready;                            // its first packet
};

// $NEREID_KEEP_WARM; 0 where it is unset, or no number of seconds up to a day.
double seconds_kept_warm();

// A worker left under `key`, if there is one.
std::optional<WarmWorker> take_warm(const std::string& key);

// Leaves one, starting the worker pool where there is none. An error leaves `worker` to end with its
// descriptors.
Status leave_warm(const Installation& installation, const std::string& key, WarmWorker worker,
                  double seconds);

// The worker pool itself, on a socket that listens; returns when it keeps nothing and no request came for a
// while.
void keep(Fd listening);

}  // namespace nereid::sandbox
