#include "nereid/lm/checkpoint/staged_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nereid/base/file.h"

namespace nereid::lm {
namespace {

namespace fs = std::filesystem;

Status sync_folder(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return our_error("{}: {}", path.string(), std::strerror(errno));
  return ok_status();
}

}  // namespace

Result<StagedFolder> StagedFolder::create(const fs::path& given) {
  // "out/" is "out".
  fs::path path = fs::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code failure;
  if (fs::exists(path, failure) && !(fs::is_directory(path, failure) && fs::is_empty(path, failure)))
    return input_error("{}: is there already; expected a new name, or an empty folder", path.string());
  const fs::path staged = path.string() + ".incomplete";
  fs::remove_all(staged, failure);
  if (!fs::create_directory(staged, failure))
    return our_error("{}: {}", staged.string(), failure ? failure.message() : "is there already");
  return StagedFolder(path, staged);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!staged_.empty()) fs::remove_all(staged_, ignored);
}

Status StagedFolder::publish() {
  NEREID_TRY_STATUS(sync_folder(staged_));
  if (std::rename(staged_.c_str(), path_.c_str()) != 0)
    return our_error("{}: {}", path_.string(), std::strerror(errno));
  staged_.clear();
  return sync_folder(path_.parent_path());
}

}  // namespace nereid::lm
