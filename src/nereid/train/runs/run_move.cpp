#include "nereid/train/runs/run_move.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/train/rl/objective/run_file_keys.h"
#include "nereid/train/run_folder.h"
#include "nereid/train/toml_table.h"

namespace nereid::train {
namespace {

namespace fs = std::filesystem;

struct FilePath {
  std::string key, path;
};

// The values of keys that are paths.
Result<std::vector<FilePath>> paths_in(std::string_view text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return input_error("{}: {}", name, parsed.error().description());
  std::vector<FilePath> paths;
  for (const RunFileKey& key : run_file_keys()) {
    if (!key.unit.starts_with("path")) continue;
    const auto node = parsed.table().at_path(key.path);
    if (const auto text_value = node.value<std::string>()) paths.push_back({key.path, *text_value});
    if (const auto* list = node.as_array())
      for (const auto& item : *list)
        if (const auto item_value = item.value<std::string>()) paths.push_back({key.path, *item_value});
  }
  std::erase_if(paths, [](const FilePath& one) { return one.path.empty(); });
  return paths;
}

// Whether a path is a folder's or below it.
bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/' || folder.ends_with('/'));
}

std::string changed_path(const std::string& path, const std::vector<PathChange>& changes) {
  const PathChange* best = nullptr;
  for (const PathChange& change : changes)
    if (is_below(path, change.first) && (best == nullptr || change.first.size() > best->first.size()))
      best = &change;
  return best == nullptr ? path : best->second + path.substr(best->first.size());
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// The text with its paths as they are to be: comments and order stay.
Result<MovedRun> change_paths(const fs::path& run_file, const std::vector<PathChange>& changes) {
  MovedRun moved;
  std::error_code error;
  if (!fs::exists(run_file, error)) return moved;
  NEREID_TRY(std::string text, read_file(run_file, 1 << 20));
  NEREID_TRY(const auto before, paths_in(text, run_file.string()));
  for (const FilePath& one : before) {
    const std::string now = changed_path(one.path, changes);
    if (now == one.path || std::ranges::count(moved.changed, PathChange{one.path, now}) > 0) continue;
    for (const char* quote : {"\"", "'"})
      text = replaced(std::move(text), quote + one.path + quote, quote + now + quote);
    moved.changed.emplace_back(one.path, now);
  }
  NEREID_TRY(const auto after, paths_in(text, run_file.string()));
  for (size_t i = 0; i < before.size(); ++i) {
    if (i >= after.size() || after[i].path != changed_path(before[i].path, changes))
      return input_error("{}: {}: expected \"{}\" without escapes, to be changed", run_file.string(),
                         before[i].key, before[i].path);
    if (!fs::exists(after[i].path, error)) moved.missing.push_back(after[i].key + ": " + after[i].path);
  }
  if (!moved.changed.empty()) NEREID_TRY_STATUS(write_file_atomically(run_file, text));
  return moved;
}

Status move_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), error);
  if (error) return input_error("{}: {}", to.parent_path().string(), error.message());
  fs::rename(from, to, error);
  if (!error) return ok_status();
  if (error != std::errc::cross_device_link) return input_error("{}: {}", to.string(), error.message());
  const fs::path part = to.string() + ".incomplete";
  fs::remove_all(part, error);
  fs::copy(from, part, fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  if (!error) ::sync();
  if (!error) fs::rename(part, to, error);
  if (error) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    return input_error("{}: {}; {} is as it was", to.string(), error.message(), from.string());
  }
  fs::remove_all(from, error);
  return error ? input_error("{}: is in {} now; what was there cannot be removed: {}", from.string(),
                             to.string(), error.message())
               : ok_status();
}

std::string without_slash(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Status stop_run(const fs::path& folder, double patience) {
  NEREID_TRY(const bool running, is_running(folder));
  NEREID_TRY(const auto process, process_of(folder));
  if (!running) return input_error("{}: expected a run that is running, got none", folder.string());
  if (!process) return input_error("{}: process.json is missing: end its process by Ctrl-C", folder.string());
  if (process->host != own_host())
    return input_error("{}: runs on host {}, process {}: stop it there", folder.string(), process->host,
                       process->pid);
  const auto words = read_file(fmt::format("/proc/{}/cmdline", process->pid));
  if (!words.ok() || words->find("nereid") == std::string::npos)
    return input_error("{}: process {} is none of ours: the run is in another container", folder.string(),
                       process->pid);
  if (::kill(static_cast<pid_t>(process->pid), SIGTERM) != 0)
    return input_error("{}: process {}: {}", folder.string(), process->pid, std::strerror(errno));
  for (const auto deadline = Deadline::after(patience); !deadline.passed(); ::usleep(50'000)) {
    NEREID_TRY(const bool still, is_running(folder));
    if (!still) return ok_status();
    if (interrupted()) return Error{"interrupted; the run stops by itself", Blame::kInterrupted};
  }
  return input_error("{}: process {} has not ended after {:g} s; it does when its step is done",
                     folder.string(), process->pid, patience);
}

Result<MovedRun> move_run(const fs::path& from, const fs::path& to, std::vector<PathChange> changes) {
  std::error_code error;
  if (!fs::exists(from / "run.toml", error))
    return input_error("{}: expected the folder of a run, with run.toml", from.string());
  NEREID_TRY(const auto lock, lock_run_folder(from, 0));
  if (!lock) return input_error("{}: a run is writing there; stop it first", from.string());
  const std::string before = without_slash(from), after = without_slash(to);
  if (before != after) {
    if (fs::exists(to, error)) return input_error("{}: expected a name that is free", to.string());
    NEREID_TRY_STATUS(move_folder(before, after));
    changes.emplace_back(before, after);
    changes.emplace_back(without_slash(fs::absolute(from)), without_slash(fs::absolute(to)));
  }
  return change_paths(fs::path(after) / "run.toml", changes);
}

}  // namespace nereid::train
