#include "nereid/sandbox/jail/attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace nereid::sandbox {
namespace {

int error_of(const std::function<long()>& call) {
  errno = 0;
  return call() < 0 ? errno : 0;
}

Attempt open_file(const std::string& path, int how = O_RDONLY) {
  const int error = error_of([&] {
    const int fd = ::open(path.c_str(), how | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    return fd;
  });
  return {fmt::format("open {}{}", path, how == O_RDONLY ? "" : " to write"), error, true};
}

// A call by number, with arguments that make it fail without an effect where it is allowed: EPERM and ENOSYS
// alone count as refused.
Attempt harmless(const char* name, long number, long a = 0, long b = 0, long c = 0) {
  const int error = error_of([&] { return ::syscall(number, a, b, c, 0, 0, 0); });
  return {name, error == EPERM || error == ENOSYS || error == EACCES ? error : 0, false};
}

Attempt fork_once() {
  const int error = error_of([] {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return static_cast<long>(pid);
  });
  return {"fork", error, false};
}

Attempt open_socket(const char* name, int family) {
  return {name, error_of([=] { return ::socket(family, SOCK_STREAM, 0); }), false};
}

Attempt read_memory(pid_t victim) {
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x1000), 1};
  const int error =
      error_of([&] { return static_cast<long>(::process_vm_readv(victim, &here, 1, &there, 1, 0)); });
  return {"process_vm_readv", error == EFAULT ? 0 : error, false};
}

}  // namespace

std::vector<Attempt> run_attempts(pid_t victim) {
  constexpr long kNowhere = 1;  // an unmapped address
  return {
      open_file("/etc/passwd"),
      open_file("/", O_RDONLY | O_DIRECTORY),
      open_file("/tmp/nereid-escape", O_WRONLY | O_CREAT),
      open_file("/dev/shm/nereid-escape", O_WRONLY | O_CREAT),
      open_file(fmt::format("/proc/{}/environ", victim)),
      open_file(fmt::format("/proc/{}/mem", victim)),
      open_socket("an internet socket", AF_INET),
      open_socket("a socket of this machine's", AF_UNIX),
      open_socket("a netlink socket", AF_NETLINK),
      fork_once(),
      harmless("execve", SYS_execve, kNowhere),
      harmless("execveat", SYS_execveat, -1, kNowhere),
      {"kill", error_of([=] { return ::kill(victim, 0); }), false},
      {"tgkill", error_of([=] { return ::syscall(SYS_tgkill, victim, victim, 0); }), false},
      {"ptrace", error_of([=] { return ::ptrace(PTRACE_SEIZE, victim, nullptr, nullptr); }), false},
      read_memory(victim),
      harmless("pidfd_open", SYS_pidfd_open, victim, -1),
      harmless("mount", SYS_mount, kNowhere, kNowhere),
      harmless("unshare", SYS_unshare, CLONE_NEWUSER | CLONE_SIGHAND),
      harmless("setns", SYS_setns, -1),
      harmless("chroot", SYS_chroot, kNowhere),
      harmless("bpf", SYS_bpf, -1),
      harmless("io_uring_setup", SYS_io_uring_setup, 0),
      harmless("userfaultfd", SYS_userfaultfd, -1),
      harmless("perf_event_open", SYS_perf_event_open, kNowhere),
      harmless("keyctl", SYS_keyctl, -1),
      harmless("init_module", SYS_init_module, kNowhere),
      harmless("mknod", SYS_mknod, kNowhere),
      harmless("unlink", SYS_unlink, kNowhere),
      harmless("rename", SYS_rename, kNowhere, kNowhere),
      harmless("shmget", SYS_shmget, 0, -1),
      harmless("typing at a terminal", SYS_ioctl, -1, TIOCSTI),
  };
}

std::vector<std::string> worked(const std::vector<Attempt>& attempts, bool files) {
  std::vector<std::string> names;
  for (const auto& attempt : attempts)
    if (attempt.error == 0 && (files || !attempt.of_a_file)) names.push_back(attempt.name);
  return names;
}

}  // namespace nereid::sandbox
