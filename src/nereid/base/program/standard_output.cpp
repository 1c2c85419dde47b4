#include "nereid/base/program/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nereid {

void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int same = ::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
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
