#include "nereid/sandbox/zygote/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace nereid::sandbox {
namespace {

constexpr size_t kMaxDescriptors = 8;  // with one packet

}  // namespace

Result<std::pair<Fd, Fd>> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return our_error("socketpair: {}", strerror(errno));
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Status send_packet(int socket, std::string_view packet, const std::vector<int>& descriptors) {
  NEREID_CHECK(descriptors.size() <= kMaxDescriptors, "at most {} descriptors, got {}", kMaxDescriptors,
               descriptors.size());
  iovec piece{const_cast<char*>(packet.data()), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  ssize_t sent;
  while ((sent = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
  if (sent < 0) return our_error("send to a worker: {}", strerror(errno));
  return ok_status();
}

Result<std::optional<std::string>> receive_packet(int socket, std::vector<Fd>* descriptors) {
  std::string packet(kMaxPacket, '\0');
  iovec piece{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece, message.msg_iovlen = 1;
  if (descriptors != nullptr) message.msg_control = control, message.msg_controllen = sizeof control;
  ssize_t got;
  while ((got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  if (got < 0) return our_error("receive from a worker: {}", strerror(errno));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); descriptors != nullptr && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
      descriptors->emplace_back(fd);
    }
  }
  if (got == 0) return std::optional<std::string>();
  packet.resize(static_cast<size_t>(got));
  return std::optional<std::string>(std::move(packet));
}

Result<Fd> memory_file(std::string_view bytes, const char* name) {
  Fd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) return our_error("memory file {}: {}", name, strerror(errno));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return our_error("memory file {} of {} bytes: {}", name, bytes.size(), strerror(errno));
    done += static_cast<size_t>(wrote);
  }
  return file;
}

}  // namespace nereid::sandbox
