// The folder of a run: one run file, and one process that writes there.
//
// A lock on the folder says whether a run is at it; process.json says which process was the last one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"
#include "nereid/train/run_changes.h"

namespace nereid::train {

struct RunProcess {
  int64_t pid = 0;        // of the command, whatever the number of its ranks
  std::string host{};     // where that number counts
  double started = 0;     // seconds since 1970
  std::string command{};  // that resumes the run: "nereid train rl runs/a.toml -o training/a"
};

struct OpenRun {
  Fd lock;                           // for as long as it is held
  std::vector<KeyChange> changes{};  // of the run file, since the run was begun; accepted
};

// Makes the folder, keeps a copy of the run file there (run.toml), and notes the process. An error (blamed on
// the input): another run is writing there, or the copy has other values, unless `accept_changes`: then it
// is replaced, and kept as run-N.toml.
Result<OpenRun> open_run_folder(const std::filesystem::path& folder, const std::string& run_file,
                                bool accept_changes, const RunProcess& process);

// The lock alone; none where another process has it for longer than `patience` seconds.
Result<std::optional<Fd>> lock_run_folder(const std::filesystem::path& folder, double patience);

// Whether a run is writing there now.
Result<bool> is_running(const std::filesystem::path& folder);

// The last process of a run; none where process.json is missing.
Result<std::optional<RunProcess>> process_of(const std::filesystem::path& folder);

std::string own_host();

}  // namespace nereid::train
