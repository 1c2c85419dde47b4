// Files: read whole, write atomically, own a descriptor, own a temporary folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "nereid/base/result.h"

namespace nereid {

// The whole file; an error (blamed on the input) names the path and the system's reason, or the size over
// `max_bytes`. A pipe is read to its end; a named one without a writer is an error.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

// Writes to a temporary name next to `path`, syncs, and renames: readers and a kill -9 see the old file or
// the new one.
Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Owns a file descriptor; closes it once.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// A new folder under $TMPDIR (or /tmp), removed with all it holds when this goes.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(std::string_view prefix = "nereid");
  // One that another process created, and gave up by release().
  static TemporaryFolder adopt(std::filesystem::path path) { return TemporaryFolder(std::move(path)); }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  // It stays, and its path is given: nothing is removed here.
  std::filesystem::path release() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace nereid
