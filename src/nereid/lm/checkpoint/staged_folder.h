// A folder that appears whole or not at all: filled under another name in the same folder, then renamed.
#pragma once

#include <filesystem>
#include <utility>

#include "nereid/base/result.h"

namespace nereid::lm {

class StagedFolder {
 public:
  // `path` must not exist, or be an empty folder; its parent must exist. What an earlier attempt left under
  // the temporary name is removed.
  static Result<StagedFolder> create(const std::filesystem::path& path);
  StagedFolder(StagedFolder&& other) noexcept
      : path_(std::move(other.path_)), staged_(std::exchange(other.staged_, {})) {}
  StagedFolder& operator=(StagedFolder&&) = delete;
  ~StagedFolder();  // removes what was not published

  const std::filesystem::path& staged() const { return staged_; }  // files go here; each writer syncs its own
  Status publish();  // syncs the folder, renames it, syncs its parent

 private:
  StagedFolder(std::filesystem::path path, std::filesystem::path staged)
      : path_(std::move(path)), staged_(std::move(staged)) {}
  std::filesystem::path path_, staged_;
};

}  // namespace nereid::lm
