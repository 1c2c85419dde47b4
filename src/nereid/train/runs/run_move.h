// Stopping a run, and moving its folder.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

// SIGTERM to the run's process, as Ctrl-C: it keeps a checkpoint of its last whole step and ends. Returns
// when it has. Errors (blamed on the input): nothing runs there, it runs on another host, or it has not ended
// after `patience` seconds; then it still does so by itself.
Status stop_run(const std::filesystem::path& folder, double patience);

// How the paths of a run file that begin with a folder are to begin.
using PathChange = std::pair<std::string, std::string>;

struct MovedRun {
  std::vector<PathChange> changed{};   // paths of run.toml, before and after
  std::vector<std::string> missing{};  // of its paths, what is not here: "rl.tasks: /data/tasks.jsonl"
};

// The run's folder becomes `to`, which is not there yet, or is `from`: then only paths change. Paths of
// run.toml that begin with `from` follow it, others follow `changes`, of which the longest counts. Files are
// renamed, or copied where `to` is on another file system: `from` goes when the copy is whole. Errors (blamed
// on the input): a run is writing there, `to` is there.
Result<MovedRun> move_run(const std::filesystem::path& from, const std::filesystem::path& to,
                          std::vector<PathChange> changes);

}  // namespace nereid::train
