#include "nereid/sandbox/layers/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

namespace nereid::sandbox {
namespace {

// Work on one's own memory, threads, open files and time.
constexpr const char* kAllowed[] = {"read",
                                    "write",
                                    "readv",
                                    "writev",
                                    "pread64",
                                    "pwrite64",
                                    "preadv",
                                    "pwritev",
                                    "preadv2",
                                    "pwritev2",
                                    "close",
                                    "close_range",
                                    "fstat",
                                    "stat",
                                    "lstat",
                                    "newfstatat",
                                    "statx",
                                    "statfs",
                                    "fstatfs",
                                    "lseek",
                                    "mmap",
                                    "mprotect",
                                    "munmap",
                                    "mremap",
                                    "madvise",
                                    "mincore",
                                    "brk",
                                    "rt_sigaction",
                                    "rt_sigprocmask",
                                    "rt_sigreturn",
                                    "rt_sigpending",
                                    "rt_sigtimedwait",
                                    "rt_sigsuspend",
                                    "pause",
                                    "sigaltstack",
                                    "access",
                                    "faccessat",
                                    "faccessat2",
                                    "pipe",
                                    "pipe2",
                                    "dup",
                                    "dup2",
                                    "dup3",
                                    "fcntl",
                                    "getcwd",
                                    "chdir",
                                    "fchdir",
                                    "readlink",
                                    "readlinkat",
                                    "getdents",
                                    "getdents64",
                                    "umask",
                                    "futex",
                                    "set_robust_list",
                                    "get_robust_list",
                                    "set_tid_address",
                                    "rseq",
                                    "sched_yield",
                                    "sched_getaffinity",
                                    "sched_getparam",
                                    "sched_getscheduler",
                                    "sched_get_priority_max",
                                    "sched_get_priority_min",
                                    "getcpu",
                                    "getpid",
                                    "gettid",
                                    "getppid",
                                    "getuid",
                                    "geteuid",
                                    "getgid",
                                    "getegid",
                                    "getresuid",
                                    "getresgid",
                                    "getgroups",
                                    "getpgrp",
                                    "getpgid",
                                    "getsid",
                                    "uname",
                                    "sysinfo",
                                    "getrlimit",
                                    "getrusage",
                                    "times",
                                    "gettimeofday",
                                    "time",
                                    "clock_gettime",
                                    "clock_getres",
                                    "clock_nanosleep",
                                    "nanosleep",
                                    "alarm",
                                    "setitimer",
                                    "getitimer",
                                    "getpriority",
                                    "epoll_create",
                                    "epoll_create1",
                                    "epoll_ctl",
                                    "epoll_wait",
                                    "epoll_pwait",
                                    "eventfd2",
                                    "poll",
                                    "ppoll",
                                    "select",
                                    "pselect6",
                                    "getrandom",
                                    "exit",
                                    "exit_group",
                                    "wait4",
                                    "waitid",
                                    "membarrier",
                                    "arch_prctl",
                                    "restart_syscall",
                                    "sendfile",
                                    "copy_file_range",
                                    "fadvise64",
                                    "fsync",
                                    "fdatasync",
                                    "flock"};

// Changing files, in the scratch folder (Landlock and the read-only root keep it there).
constexpr const char* kWriting[] = {"open",      "openat",    "creat",     "mkdir",   "mkdirat",
                                    "rmdir",     "unlink",    "unlinkat",  "rename",  "renameat",
                                    "renameat2", "link",      "linkat",    "symlink", "symlinkat",
                                    "truncate",  "ftruncate", "fallocate", "chmod",   "fchmod",
                                    "fchmodat",  "utimensat", "utime",     "utimes",  "futimesat"};

// Not needed, and refused with EPERM, which programs report plainly.
constexpr const char* kRefused[] = {"ptrace",
                                    "socket",
                                    "socketpair",
                                    "connect",
                                    "bind",
                                    "listen",
                                    "accept",
                                    "accept4",
                                    "sendto",
                                    "sendmmsg",
                                    "recvfrom",
                                    "recvmmsg",
                                    "mount",
                                    "umount2",
                                    "pivot_root",
                                    "chroot",
                                    "unshare",
                                    "setns",
                                    "bpf",
                                    "kexec_load",
                                    "kexec_file_load",
                                    "reboot",
                                    "init_module",
                                    "finit_module",
                                    "delete_module",
                                    "swapon",
                                    "swapoff",
                                    "keyctl",
                                    "add_key",
                                    "request_key",
                                    "perf_event_open",
                                    "process_vm_readv",
                                    "process_vm_writev",
                                    "pidfd_open",
                                    "pidfd_getfd",
                                    "pidfd_send_signal",
                                    "kcmp",
                                    "userfaultfd",
                                    "open_by_handle_at",
                                    "name_to_handle_at",
                                    "setuid",
                                    "setgid",
                                    "setreuid",
                                    "setregid",
                                    "setresuid",
                                    "setresgid",
                                    "setgroups",
                                    "setfsuid",
                                    "setfsgid",
                                    "capset",
                                    "chown",
                                    "fchown",
                                    "lchown",
                                    "fchownat",
                                    "setsid",
                                    "setpgid",
                                    "sched_setaffinity",
                                    "sched_setscheduler",
                                    "sched_setparam",
                                    "sched_setattr",
                                    "setpriority",
                                    "settimeofday",
                                    "clock_settime",
                                    "adjtimex",
                                    "clock_adjtime",
                                    "sethostname",
                                    "setdomainname",
                                    "shmget",
                                    "shmat",
                                    "shmctl",
                                    "semget",
                                    "msgget",
                                    "mq_open",
                                    "mknod",
                                    "mknodat",
                                    "mlock",
                                    "mlockall",
                                    "iopl",
                                    "ioperm",
                                    "quotactl",
                                    "acct",
                                    "vhangup",
                                    "personality",
                                    "seccomp"};

// What a GPU's driver asks besides: where memory lies.
constexpr const char* kDriverCalls[] = {"open", "openat", "get_mempolicy", "mbind", "set_mempolicy", "msync"};

constexpr uint64_t kThread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
constexpr uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

class Builder {
 public:
  Builder() : context_(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release) {
    if (!context_) failure_ = ENOMEM;
    if (context_) seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  }

  // A call the running architecture does not have needs no rule.
  template <typename... Compare>
  void rule(uint32_t action, const char* name, Compare... compare) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0 || failure_ != 0) return;
    const int failed = seccomp_rule_add(context_.get(), action, number, sizeof...(compare), compare...);
    if (failed != 0) failure_ = -failed, failed_name_ = name;
  }
  template <typename... Compare>
  void allow(const char* name, Compare... compare) {
    rule(SCMP_ACT_ALLOW, name, compare...);
  }
  void refuse(const char* name) { rule(SCMP_ACT_ERRNO(EPERM), name); }

  Result<std::vector<sock_filter>> compile() {
    if (failure_ != 0) return our_error("seccomp takes no rule for {}: {}", failed_name_, strerror(failure_));
    const int fd = ::memfd_create("seccomp", MFD_CLOEXEC);
    if (fd < 0) return our_error("no memory file for the seccomp filter: {}", strerror(errno));
    const int failed = seccomp_export_bpf(context_.get(), fd);
    const off_t bytes = ::lseek(fd, 0, SEEK_END);
    std::vector<sock_filter> program(bytes > 0 ? static_cast<size_t>(bytes) / sizeof(sock_filter) : 0);
    const ssize_t got = ::pread(fd, program.data(), program.size() * sizeof(sock_filter), 0);
    ::close(fd);
    if (failed != 0 || got != bytes || program.empty())
      return our_error("seccomp exports no filter: {}", strerror(-failed));
    return program;
  }

 private:
  Context context_;
  int failure_ = 0;
  std::string failed_name_ = "any call";
};

void allow_some_controls(Builder& builder) {
  for (unsigned long request : {TCGETS, FIONREAD, FIOCLEX, FIONCLEX, FIONBIO})
    builder.allow("ioctl", SCMP_A1(SCMP_CMP_EQ, request));
  constexpr int kSetVma = 0x53564d41;
  for (int option : {PR_SET_NAME, PR_GET_NAME, kSetVma, PR_GET_DUMPABLE})
    builder.allow("prctl", SCMP_A0(SCMP_CMP_EQ, static_cast<uint64_t>(option)));
  builder.allow("prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));  // one's own, which can only be lowered
}

// NVIDIA's kernel modules: the resource manager's requests are of type 'F', those of unified memory plain
// small numbers and two of its own.
void allow_device_controls(Builder& builder) {
  constexpr uint64_t kType = 0xff00, kResourceManager = 'F' << 8;
  builder.allow("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, kType, kResourceManager));
  builder.allow("ioctl", SCMP_A1(SCMP_CMP_LE, 0xff));
  for (uint64_t request : {0x30000001, 0x30000002}) builder.allow("ioctl", SCMP_A1(SCMP_CMP_EQ, request));
}

void allow_processes(Builder& builder, const SeccompOptions& options) {
  if (options.may_run_programs) {
    builder.allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0));
    for (const char* name : {"fork", "vfork", "execve"}) builder.allow(name);
  } else {
    builder.allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces | kThread, kThread));
    for (const char* name : {"fork", "vfork", "execve", "execveat"}) builder.refuse(name);
  }
  for (const char* name : {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}) {
    if (options.own_pid_namespace)
      builder.allow(name);
    else
      builder.refuse(name);
  }
}

long load(const std::vector<sock_filter>& program, unsigned flags) {
  const sock_fprog loaded{static_cast<unsigned short>(program.size()),
                          const_cast<sock_filter*>(program.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &loaded);
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp_filter(const SeccompOptions& options) {
  Builder builder;
  for (const char* name : kAllowed) builder.allow(name);
  if (options.devices) {
    for (const char* name : kDriverCalls) builder.allow(name);
    allow_device_controls(builder);
  }
  if (options.writes_files) {
    for (const char* name : kWriting) builder.allow(name);
  } else if (!options.devices) {
    constexpr uint64_t kChanges = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
    builder.allow("open", SCMP_A1(SCMP_CMP_MASKED_EQ, kChanges, 0));
    builder.allow("openat", SCMP_A2(SCMP_CMP_MASKED_EQ, kChanges, 0));
  }
  if (options.shared_memory) builder.allow("memfd_create");
  if (options.shared_memory && !options.writes_files)
    for (const char* name : {"ftruncate", "fallocate"}) builder.allow(name);
  for (const char* name : {"sendmsg", "recvmsg"}) {
    if (options.messages)
      builder.allow(name);
    else
      builder.refuse(name);
  }
  for (const char* name : kRefused) builder.refuse(name);
  allow_some_controls(builder);
  allow_processes(builder, options);
  return builder.compile();
}

Status load_seccomp_filter(const std::vector<sock_filter>& program) {
  const long outcome = load(program, SECCOMP_FILTER_FLAG_TSYNC);
  if (outcome > 0) return our_error("seccomp does not load: thread {} has a filter of its own", outcome);
  if (outcome < 0) return our_error("seccomp does not load: {}", strerror(errno));
  return ok_status();
}

Result<int> load_seccomp_filter_with_listener(std::vector<sock_filter> program, bool opens) {
  for (auto& instruction : program)
    if (instruction.code == (BPF_RET | BPF_K) &&
        (instruction.k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
      instruction.k = SECCOMP_RET_USER_NOTIF;
  if (opens) {
    const sock_filter asks[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 1, 0),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
    program.insert(program.begin(), std::begin(asks), std::end(asks));
  }
  const long listener = load(program, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
                                          SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener < 0) return our_error("seccomp does not load: {}", strerror(errno));
  return static_cast<int>(listener);
}

int refused_with(int system_call) {
  for (const char* name : kRefused)
    if (seccomp_syscall_resolve_name(name) == system_call) return EPERM;
  for (const char* name : {"sendmsg", "recvmsg", "fork", "vfork", "execve", "execveat", "kill", "tkill",
                           "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"})
    if (seccomp_syscall_resolve_name(name) == system_call) return EPERM;
  return ENOSYS;
}

}  // namespace nereid::sandbox
