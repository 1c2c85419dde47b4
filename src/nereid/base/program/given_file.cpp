#include "nereid/base/program/given_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nereid {

Status can_be_read(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK) != 0)
    return input_error("{}: {}", path.string(), std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return input_error("{}: is a folder, expected a file", path.string());
  return ok_status();
}

}  // namespace nereid
