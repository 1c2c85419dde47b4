#include "nereid/train/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "nereid/base/json_field.h"

namespace nereid::train {

Result<Fd> open_cut_off(const std::filesystem::path& path, int64_t from_step) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return our_error("{}: cannot write: {}", path.string(), std::strerror(errno));
  std::ifstream lines(path);
  std::string line;
  off_t keep = 0;
  while (std::getline(lines, line) && !lines.eof()) {
    NEREID_TRY(const Json json, parse_json(line, path.string()));
    const std::string named = path.string();  // a field refers to its name
    const JsonField root(json, named);
    NEREID_TRY(const auto step, root.at("step"));
    NEREID_TRY(const int64_t number, step.integer(0, INT64_MAX));
    if (number >= from_step) break;
    keep += static_cast<off_t>(line.size()) + 1;
  }
  if (::ftruncate(fd.get(), keep) != 0)
    return our_error("{}: cannot be cut: {}", path.string(), std::strerror(errno));
  return fd;
}

Status append(const Fd& file, const std::filesystem::path& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return our_error("{}: cannot write: {}", path.string(), std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return ok_status();
}

}  // namespace nereid::train
