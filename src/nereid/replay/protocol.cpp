#include "nereid/replay/protocol.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "nereid/base/program/interrupt.h"
#include "nereid/replay/message.h"

namespace nereid::replay {
namespace {

using namespace std::chrono_literals;

// A user may have no more descriptors in transit than a process may have open, which is few in a jail, and
// all jails of a machine are one user's. Of many workers that answer at once, each waits until other answers
// are read.
constexpr std::chrono::milliseconds kLongestWait = 60s;

// Reads exactly `size` bytes; with `message`, descriptors that come along are kept.
Status read_exactly(int socket, char* data, size_t size, Deadline deadline, Message* message,
                    bool* timed_out) {
  while (size > 0) {
    pollfd waiting[2] = {{socket, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const int ready = poll(waiting, 2, deadline.poll_milliseconds());
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      if (timed_out) *timed_out = true;
      return our_error("a replay worker did not answer in time");
    }
    if (waiting[0].revents == 0) return Error{"interrupted", Blame::kInterrupted};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    iovec piece{data, size};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return our_error("the other side is gone");
    for (auto* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        Fd owned(fd);
        if (message && message->descriptors.size() < kMaxDescriptors)
          message->descriptors.push_back(std::move(owned));
      }
    }
    data += got;
    size -= got;
  }
  return ok_status();
}

}  // namespace

Result<std::pair<Fd, Fd>> make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return our_error("socketpair: {}", strerror(errno));
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Status send_message(int socket, const Json& document, const std::vector<int>& descriptors) {
  NEREID_CHECK(descriptors.size() <= kMaxDescriptors, "at most {} descriptors", kMaxDescriptors);
  std::string bytes(4, '\0');
  Json::to_cbor(document, nlohmann::detail::output_adapter<char>(bytes));
  const uint32_t length = bytes.size() - 4;
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  std::chrono::milliseconds slept{0};
  for (size_t done = 0; done < bytes.size();) {
    iovec piece{bytes.data() + done, bytes.size() - done};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (done == 0 && !descriptors.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      auto* c = CMSG_FIRSTHDR(&header);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
    }
    const ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == ETOOMANYREFS && slept < kLongestWait) {
      ::usleep(1000), slept += 1ms;
      continue;
    }
    if (sent < 0) return our_error("the other side is gone ({})", strerror(errno));
    done += sent;
  }
  return ok_status();
}

Result<Message> receive_message(int socket, Deadline deadline, bool* timed_out) {
  Message message;
  unsigned char head[4];
  NEREID_TRY_STATUS(read_exactly(socket, reinterpret_cast<char*>(head), 4, deadline, &message, timed_out));
  const size_t length = head[0] | head[1] << 8 | head[2] << 16 | size_t{head[3]} << 24;
  if (length > kMaxMessage) return our_error("a message of {} bytes", length);
  std::string bytes(length, '\0');
  NEREID_TRY_STATUS(read_exactly(socket, bytes.data(), length, deadline, &message, timed_out));
  NEREID_TRY(message.document, parse_cbor(bytes, "a replay worker's message"));
  return message;
}

Result<Fd> sealed_file(std::string_view bytes) {
  Fd fd(memfd_create("nereid-document", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return our_error("memfd_create: {}", strerror(errno));
  for (size_t done = 0; done < bytes.size();) {
    const auto wrote = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return our_error("a memory file of {} bytes: {}", bytes.size(), strerror(errno));
    done += wrote;
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return our_error("sealing a memory file: {}", strerror(errno));
  return fd;
}

Result<std::string> read_sealed_file(int fd, size_t max_bytes) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || static_cast<size_t>(status.st_size) > max_bytes)
    return our_error("a document of {} bytes", status.st_size);
  std::string bytes(status.st_size, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const auto got = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return our_error("reading a memory file: {}", strerror(errno));
    done += got;
  }
  return bytes;
}

}  // namespace nereid::replay
