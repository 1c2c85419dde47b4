#include "nereid/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

namespace nereid {

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes) {
  // Without O_NONBLOCK, open() would wait for a pipe's other end.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return input_error("{}: {}", path.string(), std::strerror(errno));
  const bool named_pipe =
      S_ISFIFO(info.st_mode) && !path.string().starts_with("/dev/") && !path.string().starts_with("/proc/");
  if (S_ISDIR(info.st_mode)) return input_error("{}: is a folder, expected a file", path.string());
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) > max_bytes)
    return input_error("{}: more than {} bytes", path.string(), max_bytes);
  std::string bytes;
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd more{.fd = fd.get(), .events = POLLIN, .revents = 0};
      ::poll(&more, 1, -1);
      continue;
    }
    if (got == 0 && named_pipe && bytes.empty())
      return input_error("{}: is a pipe without a writer, expected a file", path.string());
    if (got < 0) return input_error("{}: {}", path.string(), std::strerror(errno));
    if (got == 0) return bytes;
    bytes.append(chunk, static_cast<size_t>(got));
    if (bytes.size() > max_bytes) return input_error("{}: more than {} bytes", path.string(), max_bytes);
  }
}

namespace {

Status write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return our_error("{}: {}", path.string(), std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return ok_status();
}

}  // namespace

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  auto failed = [&] { return our_error("{}: {}", path.string(), std::strerror(errno)); };
  // A device or a pipe is written to; a file in its place would be its end.
  if (struct stat there{};
      ::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    const Fd device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return device.valid() ? write_all(device.get(), bytes, path) : failed();
  }
  std::string temporary;
  Fd fd;
  // Not by process id: folders are shared between machines and containers.
  std::random_device random;
  do {
    temporary = fmt::format("{}.{:08x}{:08x}.tmp", path.string(), random(), random());
    fd = Fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  } while (!fd.valid() && errno == EEXIST);
  if (!fd.valid()) return failed();
  auto fail = [&] {
    const auto error = failed();
    ::unlink(temporary.c_str());
    return error;
  };
  if (Status written = write_all(fd.get(), bytes, path); !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::fsync(fd.get()) != 0) return fail();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail();
  return ok_status();
}

Result<TemporaryFolder> TemporaryFolder::create(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string name = fmt::format("{}/{}.XXXXXX", base != nullptr ? base : "/tmp", prefix);
  if (::mkdtemp(name.data()) == nullptr) return our_error("{}: {}", name, std::strerror(errno));
  return TemporaryFolder(std::filesystem::path(name));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace nereid
