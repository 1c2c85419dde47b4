// Warm workers that wait for the next command. Importing torch takes seconds, a trace tens of milliseconds:
// with NEREID_KEEP_WARM=SECONDS in its environment a command that ends leaves its idle workers to the program
// `nereid-worker-pool`, and the next command that wants the same worker takes it from there: zygotes, and the
// server of replays on the CPU. A worker that is not taken ends after SECONDS, and the worker pool when it
// keeps nothing.
//
// The worker pool listens in a folder that only its user may enter ($XDG_RUNTIME_DIR/nereid or
// /tmp/nereid-UID). Never kept: a worker with children, a server of replays of a command that was interrupted
// (an answer to it may be on its way), one that is lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::sandbox {

// All that a command holds of a living worker, which ends when it is dropped.
struct WarmWorker {
  Fd control = {};                          // its socket; readable without a request: it is lost
  Fd process = {};                          // as pidfd_open gives it; of a zygote, its launcher's
  Fd lifeline = {}, errors = {};            // of a zygote, see zygote_process.h
  int pid = 0;                              // of `process`
  uint64_t next_child = 1;                  // of a zygote: the first number that it has not had
  std::string ready;                        // its first packet
  std::optional<TemporaryFolder> folder{};  // of a zygote: its children's scratch folders
};

// $NEREID_KEEP_WARM; 0 where it is unset, or no number of seconds up to a day.
double seconds_kept_warm();

// A worker left under `key`, if there is one.
std::optional<WarmWorker> take_warm(const std::string& key);

// Leaves one, starting the worker pool (a program in `bin`) where there is none. An error leaves `worker` to
// end with its descriptors.
Status leave_warm(const std::filesystem::path& bin, const std::string& key, WarmWorker worker,
                  double seconds);

// Of a file as it is now, for a key: its path, time and size; empty where there is none.
std::string stamp_of(const std::filesystem::path& file);

// The worker pool itself, on a socket that listens; returns when it keeps nothing and no request came for a
// while.
void keep(Fd listening);

}  // namespace nereid::sandbox
