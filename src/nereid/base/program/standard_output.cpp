#include "nereid/base/program/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace nereid {

namespace {

// A message that cannot be written is dropped: fmt::print would throw, and a command end with another exit
// code.
ssize_t write_message(void*, const char* text, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t wrote = ::write(STDERR_FILENO, text + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int same = ::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  const cookie_io_functions_t functions = {
      .read = nullptr, .write = write_message, .seek = nullptr, .close = nullptr};
  if (FILE* messages = ::fopencookie(nullptr, "w", functions)) {
    std::setvbuf(messages, nullptr, _IONBF, 0);
    stderr = messages;
  }
}

Status stream_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EPIPE) return Error{"stdout is closed", Blame::kInterrupted};
    if (wrote < 0) return our_error("stdout: {}", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return ok_status();
}

}  // namespace nereid
