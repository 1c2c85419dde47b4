#include "nereid/sandbox/refusals.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "nereid/sandbox/seccomp_filter.h"

namespace nereid::sandbox {
namespace {

std::string name_of(int call) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call);
  const std::string text = name != nullptr ? name : fmt::format("system call {}", call);
  ::free(name);
  return text;
}

// Text in another process; empty where this one may not look.
std::string text_at(pid_t pid, uint64_t address) {
  char text[256] = {};
  // Up to the end of a page at most: the next may not be there.
  const size_t most = std::min<size_t>(sizeof text - 1, 4096 - address % 4096);
  iovec here{text, most}, there{reinterpret_cast<void*>(address), most};
  if (::process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0) return "";
  return text;
}

std::string describe(const seccomp_notif& asked) {
  const auto& data = asked.data;
  const auto pid = static_cast<pid_t>(asked.pid);
  switch (data.nr) {
    case SYS_open:
    case SYS_execve:
      return text_at(pid, data.args[0]);
    case SYS_openat:
      return fmt::format("{}{}", text_at(pid, data.args[1]), (data.args[2] & 3) != 0 ? " (to write)" : "");
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
    if (ready > 0 && (waiting.revents & POLLIN) == 0) return;  // nobody is left to ask
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
    if (answer == Answer::kLetPass)
      response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
      response.error = -refused_with(asked.data.nr);
    std::memcpy(reply, &response, sizeof response);
    (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, reply);
  }
}

}  // namespace nereid::sandbox
