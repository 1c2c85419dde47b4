#include "nereid/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nereid/base/deadline.h"
#include "nereid/base/json_field.h"

namespace nereid::train {
namespace {

constexpr double kSecondsToBeGone = 5;  // for the ranks of a run that was killed
constexpr const char* kCopy = "run.toml";
constexpr const char* kProcess = "process.json";

Status note_process(const std::filesystem::path& folder, const RunProcess& process) {
  const Json json = {{"pid", process.pid},
                     {"host", process.host},
                     {"started", process.started},
                     {"command", process.command}};
  return write_file_atomically(folder / kProcess, json.dump() + "\n");
}

// The first of run-1.toml, run-2.toml, ... that is free.
std::filesystem::path free_name(const std::filesystem::path& folder) {
  std::error_code error;
  for (int number = 1;; ++number)
    if (auto path = folder / fmt::format("run-{}.toml", number); !std::filesystem::exists(path, error))
      return path;
}

// The copy of the run file, made or held to what the file says now.
Result<std::vector<KeyChange>> keep_copy(const std::filesystem::path& folder, const std::string& run_file,
                                         bool accept_changes) {
  NEREID_TRY(const std::string text, read_file(run_file));
  const auto copy = folder / kCopy;
  std::error_code error;
  std::vector<KeyChange> changes;
  if (std::filesystem::exists(copy, error)) {
    NEREID_TRY(const std::string before, read_file(copy));
    if (before == text) return changes;
    NEREID_TRY(changes, run_file_changes(before, copy.string(), text, run_file));
    if (!changes.empty() && !accept_changes) {
      std::string list;
      for (const KeyChange& change : changes) list += "\n  " + to_string(change);
      return input_error(
          "{}: was begun with another run file, {}; in {} there is{}\n--accept-changes resumes with that; "
          "else give this one another name or folder",
          folder.string(), copy.string(), run_file, list);
    }
    if (!changes.empty()) NEREID_TRY_STATUS(write_file_atomically(free_name(folder), before));
  }
  NEREID_TRY_STATUS(write_file_atomically(copy, text));
  return changes;
}

}  // namespace

Result<std::optional<Fd>> lock_run_folder(const std::filesystem::path& folder, double patience) {
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return input_error("{}: {}", folder.string(), std::strerror(errno));
  const Deadline deadline = Deadline::after(patience);
  // Where a file system knows no locks there are none.
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (deadline.passed()) return std::optional<Fd>();
    ::usleep(50'000);
  }
  return std::optional<Fd>(std::move(lock));
}

Result<OpenRun> open_run_folder(const std::filesystem::path& folder, const std::string& run_file,
                                bool accept_changes, const RunProcess& process) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return input_error("{}: cannot be made: {}", folder.string(), error.message());
  OpenRun run;
  NEREID_TRY(auto lock, lock_run_folder(folder, kSecondsToBeGone));
  if (!lock)
    return input_error("{}: another run is writing there; wait for it, or give this one another folder",
                       folder.string());
  run.lock = *std::move(lock);
  NEREID_TRY(run.changes, keep_copy(folder, run_file, accept_changes));
  NEREID_TRY_STATUS(note_process(folder, process));
  return run;
}

Result<bool> is_running(const std::filesystem::path& folder) {
  // Shared, and for a moment: a run that begins meanwhile tries again.
  const Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return input_error("{}: {}", folder.string(), std::strerror(errno));
  return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<std::optional<RunProcess>> process_of(const std::filesystem::path& folder) {
  const auto path = folder / kProcess;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<RunProcess>();
  NEREID_TRY(const std::string text, read_file(path, 1 << 16));
  NEREID_TRY(const Json json, parse_json(text, path.string()));
  const std::string name = path.string();
  const JsonField root(json, name);
  RunProcess process;
  NEREID_TRY(process.pid, root.integer_at("pid", 0, 1, INT32_MAX));
  NEREID_TRY(process.host, root.text_at("host"));
  NEREID_TRY(process.command, root.text_at("command"));
  NEREID_TRY(const auto started, root.at("started"));
  NEREID_TRY(process.started, started.number());
  return std::optional<RunProcess>(std::move(process));
}

std::string own_host() {
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace nereid::train
