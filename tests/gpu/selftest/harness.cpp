#include "tests/gpu/selftest/harness.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace nereid::replay::cuda::selftest {

Result<Pair> socket_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0)
    return our_error("socketpair: {}", std::strerror(errno));
  return Pair{Fd(fds[0]), Fd(fds[1])};
}

Status send_fd(const Fd& socket, const Fd& fd, uint64_t word) {
  iovec data{&word, sizeof word};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd.valid()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = fd.get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
  }
  if (sendmsg(socket.get(), &message, 0) < 0) return our_error("sendmsg: {}", std::strerror(errno));
  return ok_status();
}

Result<Received> receive_fd(const Fd& socket) {
  Received received;
  iovec data{&received.word, sizeof received.word};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = recvmsg(socket.get(), &message, 0);
  if (bytes != sizeof received.word) return our_error("the other process said nothing ({} bytes)", bytes);
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    received.fd = Fd(number);
  }
  return received;
}

Status send_word(const Fd& socket, uint64_t word) { return send_fd(socket, Fd(), word); }

Result<uint64_t> receive_word(const Fd& socket) {
  NEREID_TRY(const Received received, receive_fd(socket));
  return received.word;
}

Child::Child(const std::function<int()>& body) : pid_(fork()) {
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(body());
}

int Child::wait() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, 0) != pid_) return -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

}  // namespace nereid::replay::cuda::selftest
