#include "nereid/sandbox/jail/refusals.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nereid/sandbox/layers/seccomp_filter.h"

namespace nereid::sandbox {
namespace {

std::string name_of(int call) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call);
  const std::string text = name != nullptr ? name : fmt::format("system call {}", call);
  ::free(name);
  return text;
}

// Memory of another process; less than `most` where that ends before, nothing where this one may not look.
std::string bytes_at(pid_t pid, uint64_t address, size_t most) {
  std::string bytes(most, '\0');
  size_t filled = 0;
  while (filled < most) {  // page by page: the next may not be there
    const size_t piece = std::min<size_t>(most - filled, 4096 - (address + filled) % 4096);
    iovec here{bytes.data() + filled, piece}, there{reinterpret_cast<void*>(address + filled), piece};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(piece)) break;
    filled += piece;
    if (bytes.find('\0') < filled) break;
  }
  bytes.resize(filled);
  return bytes;
}

std::string text_at(pid_t pid, uint64_t address) {
  const std::string bytes = bytes_at(pid, address, 255);
  return bytes.substr(0, bytes.find('\0'));
}

// "unix @name" for one that is in no folder, "unix /path"; of other families the number.
std::string socket_address(pid_t pid, uint64_t address, uint64_t size) {
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  std::string family = bytes_at(pid, address, kPath), path;
  uint16_t number = 0;
  if (family.size() == kPath) std::memcpy(&number, family.data(), sizeof number);
  if (number != AF_UNIX) return fmt::format("family {}", number);
  if (size > kPath && size <= sizeof(sockaddr_un)) path = text_at(pid, address + kPath);
  if (path.empty() && size > kPath + 1) path = "@" + text_at(pid, address + kPath + 1);
  return "unix " + path;
}

std::string describe(const seccomp_notif& asked) {
  const auto& data = asked.data;
  const auto pid = static_cast<pid_t>(asked.pid);
  const auto path = [&](int argument) { return text_at(pid, data.args[argument]); };
  switch (data.nr) {
    case SYS_open:
    case SYS_execve:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_unlink:
    case SYS_chmod:
    case SYS_mknod:
      return path(0);
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_fchmodat:
    case SYS_mknodat:
      return path(1);
    case SYS_openat:
      return fmt::format("{}{}", path(1), (data.args[2] & 3) != 0 ? " (to write)" : "");
    case SYS_symlink:
    case SYS_link:
    case SYS_rename:
      return fmt::format("{} -> {}", path(0), path(1));
    case SYS_symlinkat:
      return fmt::format("{} -> {}", path(0), path(2));
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
      return fmt::format("{} -> {}", path(1), path(3));
    case SYS_bind:
    case SYS_connect:
      return socket_address(pid, data.args[1], data.args[2]);
    default:
      return fmt::format("({:#x}, {:#x})", data.args[0], data.args[1]);
  }
}

}  // namespace

Refusals::Refusals(Fd listener, Answer answer, const std::atomic<int>* phase)
    : listener_(std::move(listener)), thread_([this, answer, phase] { answer_all(answer, phase); }) {}

Refusals::~Refusals() {
  done_ = true;
  thread_.join();
}

std::map<Asked, int> Refusals::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void Refusals::answer_all(Answer answer, const std::atomic<int>* phase) {
  // Room for what a later kernel may add to its structures.
  alignas(8) char question[512], reply[512];
  while (!done_) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, 50);
    if (ready > 0 && (waiting.revents & POLLIN) == 0) return;  // the other end is closed
    if (ready <= 0) continue;
    std::memset(question, 0, sizeof question);
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, question) != 0) continue;
    seccomp_notif asked;
    std::memcpy(&asked, question, sizeof asked);
    {
      const std::lock_guard lock(mutex_);
      ++asked_[{name_of(asked.data.nr), describe(asked), phase != nullptr ? phase->load() : 0}];
    }
    std::memset(reply, 0, sizeof reply);
    seccomp_notif_resp response{};
    response.id = asked.id;
    if (answer == Answer::kAllow)
      response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
      response.error = -refused_with(asked.data.nr);
    std::memcpy(reply, &response, sizeof response);
    (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, reply);
  }
}

}  // namespace nereid::sandbox
