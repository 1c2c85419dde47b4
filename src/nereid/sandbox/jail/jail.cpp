#include "nereid/sandbox/jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "nereid/sandbox/jail/failure.h"
#include "nereid/sandbox/layers/landlock.h"
#include "nereid/sandbox/layers/outer.h"
#include "nereid/sandbox/layers/privileges.h"
#include "nereid/sandbox/layers/seccomp_filter.h"

namespace nereid::sandbox {
namespace {

// setns(CLONE_NEWPID) on oneself undoes unshare(CLONE_NEWPID) for the next fork.
Status return_to_own_pid_namespace() {
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) return failure("pidfd_open of this process");
  const int failed = ::setns(self, CLONE_NEWPID);
  const int why = errno;
  ::close(self);
  if (failed != 0) return our_error("return to this process's pid namespace: {}", strerror(why));
  return ok_status();
}

Status mount_scratch(int64_t bytes) {
  if (::unshare(CLONE_NEWNS) != 0) return failure("unshare of mounts");
  const std::string options = fmt::format("size={},nr_inodes=4096,mode=0700", bytes);
  if (::mount("nereid", kScratch, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options.c_str()) != 0)
    return failure("mount of the scratch folder");
  return ok_status();
}

// 0, 1 and 2 become /dev/null; all others but `keep` are closed.
Status keep_descriptors(std::vector<int> keep) {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return failure("open /dev/null");
  for (int fd : {0, 1, 2})
    if (std::find(keep.begin(), keep.end(), fd) == keep.end() && ::dup2(null, fd) < 0)
      return failure("dup2 of /dev/null");
  std::sort(keep.begin(), keep.end());
  unsigned first = 3;
  for (int fd : keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept < first) continue;
    if (kept > first && ::syscall(SYS_close_range, first, kept - 1, 0) != 0) return failure("close_range");
    first = kept + 1;
  }
  if (::syscall(SYS_close_range, first, ~0U, 0) != 0) return failure("close_range");
  return ok_status();
}

Status limit(decltype(RLIMIT_AS) resource, int64_t most, const char* what) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const auto value = std::min<rlim_t>(static_cast<rlim_t>(most), now.rlim_max);
  const rlimit lowered{value, value};
  if (::setrlimit(resource, &lowered) != 0) return our_error("limit of {}: {}", what, strerror(errno));
  return ok_status();
}

Status write_own_proc(const char* name, const std::string& text) {
  const int fd = ::open((std::string("/proc/self/") + name).c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failure(name);
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int why = errno;
  ::close(fd);
  return whole ? ok_status() : our_error("{}: {}", name, strerror(why));
}

// What statm's field `index` says, in bytes.
int64_t own_pages(int index, int64_t unknown) {
  std::istringstream statm(read_own_proc("statm"));
  int64_t pages = 0;
  for (int i = 0; i <= index; ++i) statm >> pages;
  return statm && pages > 0 ? pages * ::getpagesize() : unknown;
}
int64_t own_address_space() { return own_pages(0, int64_t{32} << 30); }
int64_t own_data() { return own_pages(5, int64_t{8} << 30); }

Status set_limits(const Limits& limits, int64_t address_space, bool counts_own_tasks, bool of_device) {
  if (of_device)
    NEREID_TRY_STATUS(limit(RLIMIT_DATA, own_data() + limits.memory_bytes, "data"));
  else
    NEREID_TRY_STATUS(limit(RLIMIT_AS, address_space + limits.memory_bytes, "memory"));
  NEREID_TRY_STATUS(limit(RLIMIT_FSIZE, limits.file_bytes, "file size"));
  NEREID_TRY_STATUS(limit(RLIMIT_CPU, limits.cpu_seconds, "processor time"));
  NEREID_TRY_STATUS(limit(RLIMIT_NOFILE, limits.open_files, "open files"));
  NEREID_TRY_STATUS(limit(RLIMIT_CORE, 0, "core size"));
  NEREID_TRY_STATUS(limit(RLIMIT_MEMLOCK, 0, "locked memory"));
  NEREID_TRY_STATUS(limit(RLIMIT_MSGQUEUE, 0, "message queues"));
  // Without a user namespace of its own, all of the user's tasks count together, and a low limit would hit at
  // once.
  return limit(RLIMIT_NPROC, counts_own_tasks ? limits.tasks : 4096, "tasks");
}

// Runs `body` in a forked child and returns what it failed with; it learns what works here and leaves no
// trace.
template <typename Body>
Status try_in_child(Body body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) return failure("fork");
  if (pid == 0) {
    const Status outcome = body(ends[1]);
    const std::string word = outcome.ok() ? "" : outcome.error().message;
    const ssize_t written = ::write(ends[1], word.data(), word.size());
    ::_exit(outcome.ok() && written == 0 ? 0 : 1);
  }
  ::close(ends[1]);
  std::string word(512, '\0');
  const ssize_t got = ::read(ends[0], word.data(), word.size());
  word.resize(got > 0 ? static_cast<size_t>(got) : 0);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ok_status();
  return our_error("{}", word.empty() ? fmt::format("a trial child ended with status {}", status) : word);
}

}  // namespace

void leave_network() {
  if (outer_isolation().network) return;
  const auto user = ::geteuid(), group = ::getegid();
  if (::unshare(CLONE_NEWNET) != 0) {
    // Without privileges, in a user namespace where it is who it was.
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return;
    const auto write_own = [](const char* name, const std::string& text) {
      const int fd = ::open(name, O_WRONLY | O_CLOEXEC);
      [[maybe_unused]] const ssize_t wrote = ::write(fd, text.data(), text.size());
      ::close(fd);
    };
    write_own("/proc/self/setgroups", "deny");
    write_own("/proc/self/uid_map", fmt::format("{0} {0} 1", user));
    write_own("/proc/self/gid_map", fmt::format("{0} {0} 1", group));
  }
  const char* isolation = std::getenv("NEREID_ISOLATION");
  ::setenv("NEREID_ISOLATION", fmt::format("{} network", isolation != nullptr ? isolation : "").c_str(), 1);
}

Result<Jail> Jail::prepare(Policy policy) {
  Jail jail;
  jail.policy_ = std::move(policy);
  jail.address_space_ = own_address_space();
  jail.parent_ = ::getpid();
  NEREID_TRY_STATUS(jail.probe());
  const SeccompOptions options{.may_run_programs = !jail.policy_.executables.empty(),
                               .own_pid_namespace = jail.isolation_.pid,
                               .writes_files = jail.isolation_.scratch || jail.scratch_on_disk(),
                               .shared_memory = jail.policy_.shared_memory,
                               .messages = jail.policy_.messages,
                               .devices = !jail.policy_.devices.empty()};
  auto filter = compile_seccomp_filter(options);
  if (!filter.ok()) return filter.error();
  jail.filter_ = std::move(filter).value();
  NEREID_TRY_STATUS(jail.before_fork());
  const Status whole = try_in_child([&](int report) { return jail.enter({report}); });
  NEREID_TRY_STATUS(jail.after_fork());
  if (!whole.ok()) return our_error("no child can enter the jail: {}", whole.error().message);
  return jail;
}

Status Jail::probe() {
  const Isolation outer = outer_isolation();
  isolation_.landlock = policy_.landlock ? landlock_abi() : 0;
  if (policy_.namespaces) probe_namespaces(outer);
  isolation_.user = outer.user || private_users_;
  isolation_.mount = outer.mount || private_root_;
  isolation_.network = outer.network || private_network_;
  isolation_.ipc = outer.ipc || private_ipc_;
  if (!policy_.namespaces) isolation_.notes.push_back("namespaces are switched off");
  if (!isolation_.mount)
    isolation_.notes.push_back(
        scratch_on_disk()
            ? "no root of its own; scratch folders lie on disk, only the size of a file is bounded"
            : "no root of its own, and so no scratch folder");
  if (isolation_.landlock == 0)
    isolation_.notes.push_back(policy_.landlock ? "no Landlock in this kernel" : "Landlock is switched off");
  isolation_.seccomp = isolation_.limits = true;  // a child without them does not start
  return ok_status();
}

void Jail::probe_namespaces(const Isolation& outer) {
  auto works = [&](const char* wall, const Status& tried) {
    if (!tried.ok()) isolation_.notes.push_back(fmt::format("no {}: {}", wall, tried.error().message));
    return tried.ok();
  };
  auto can_unshare = [&](const char* wall, int flag) {
    return works(wall, try_in_child([=](int) {
                   return ::unshare(flag) != 0 ? Status(failure("unshare")) : ok_status();
                 }));
  };
  isolation_.pid = policy_.pid_namespace && works("pid namespace", try_in_child([](int) {
                                                    if (::unshare(CLONE_NEWPID) != 0)
                                                      return Status(failure("unshare"));
                                                    return return_to_own_pid_namespace();
                                                  }));
  isolation_.scratch =
      outer.mount && works("private scratch folder",
                           try_in_child([&](int) { return mount_scratch(policy_.limits.scratch_bytes); }));
  private_root_ = policy_.own_root && !outer.mount && probe_root();
  if (private_root_) {  // one user namespace for all of them, where this user needs one
    private_ipc_ = private_network_ = private_users_ = true;
    return;
  }
  if (isolation_.pid && !policy_.devices.empty()) {
    isolation_.pid = false;
    isolation_.notes.push_back("no pid namespace: without a root of its own its /proc would be another's");
  }
  private_ipc_ = can_unshare("ipc namespace", CLONE_NEWIPC);
  private_network_ = !outer.network && can_unshare("network namespace", CLONE_NEWNET);
  private_users_ = can_unshare("user namespace", CLONE_NEWUSER);
}

// A driver looks itself up in /proc, and fails where it is not in it: where no /proc of a new pid namespace
// can be had, it is better off without that namespace than without a root.
bool Jail::probe_root() {
  const auto tried = [&]() -> Status {
    NEREID_TRY_STATUS(before_fork());
    const Status root = try_in_child([&](int) { return unshare_root(); });
    NEREID_TRY_STATUS(after_fork());
    return root;
  };
  Status root = tried();
  if (!root.ok() && isolation_.pid) {
    isolation_.pid = false;
    const Status without = tried();
    if (without.ok()) isolation_.notes.push_back("no pid namespace: " + root.error().message);
    root = without;
  }
  if (!root.ok()) isolation_.notes.push_back("no root of its own: " + root.error().message);
  return root.ok();
}

Status Jail::before_fork() const {
  if (isolation_.pid && ::unshare(CLONE_NEWPID) != 0) return failure("unshare of the pid namespace");
  return ok_status();
}

Status Jail::after_fork() const {
  if (isolation_.pid) return return_to_own_pid_namespace();
  return ok_status();
}

// As root; another user first becomes root of a namespace of his own.
Status Jail::unshare_root() const {
  constexpr int kOwn = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET;
  if (::unshare(kOwn) != 0) {
    const auto user = ::geteuid();
    const auto group = ::getegid();
    if (::unshare(CLONE_NEWUSER | kOwn) != 0) return failure("unshare of users, mounts, ipc and network");
    NEREID_TRY_STATUS(write_own_proc("setgroups", "deny"));
    NEREID_TRY_STATUS(write_own_proc("uid_map", fmt::format("0 {} 1", user)));
    NEREID_TRY_STATUS(write_own_proc("gid_map", fmt::format("0 {} 1", group)));
  }
  OuterSpec spec;
  for (const auto& path : policy_.readable)
    if (!path.starts_with("/dev/") && !path.starts_with("/proc")) spec.trees.push_back(path);
  spec.proc = isolation_.pid ? OuterSpec::Proc::kOfThisNamespace : OuterSpec::Proc::kAsItIs;
  spec.devices.insert(spec.devices.end(), policy_.devices.begin(), policy_.devices.end());
  return enter_root(spec);
}

Status Jail::enter_namespaces(const std::string& folder) const {
  if (private_root_) {
    NEREID_TRY_STATUS(unshare_root());
    return ::unshare(CLONE_NEWUSER) == 0 ? ok_status() : failure("unshare of users");
  }
  const int own = (private_ipc_ ? CLONE_NEWIPC : 0) | (private_network_ ? CLONE_NEWNET : 0);
  if (own != 0 && ::unshare(own) != 0) return failure("unshare of ipc and network");
  if (isolation_.scratch) NEREID_TRY_STATUS(mount_scratch(policy_.limits.scratch_bytes));
  // Without a mapping the process owns nothing in it and has the overflow user id; its tasks are counted on
  // their own.
  if (private_users_ && ::unshare(CLONE_NEWUSER) != 0) return failure("unshare of users");
  if (::chdir(folder.c_str()) != 0) return failure("chdir");
  return ok_status();
}

Status Jail::enter(const std::vector<int>& keep, const std::string& folder) const {
  NEREID_TRY_STATUS(begin(keep, folder));
  return finish();
}

Status Jail::begin(const std::vector<int>& keep, const std::string& folder) const {
  const std::string writable = isolation_.scratch ? kScratch : scratch_on_disk() ? folder : "";
  if (!isolation_.pid && ::setsid() < 0) return failure("setsid");
  NEREID_TRY_STATUS(keep_descriptors(keep));
  NEREID_TRY_STATUS(enter_namespaces(writable.empty() ? "/" : writable));
  NEREID_TRY_STATUS(drop_privileges());
  if (isolation_.landlock > 0) {
    // The rules for one's own folders of /proc are for what the kernel made when they were opened.
    if (!policy_.devices.empty()) (void)::open("/proc/self/task", O_PATH | O_CLOEXEC);
    NEREID_TRY_STATUS(landlock_restrict({.readable = policy_.readable,
                                         .executables = policy_.executables,
                                         .writable = writable,
                                         .devices = policy_.devices,
                                         .own_proc = !policy_.devices.empty()}));
  }
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failure("PR_SET_PDEATHSIG");
  if (!isolation_.pid && ::getppid() != parent_) return our_error("the parent is gone");
  return ok_status();
}

Status Jail::finish(int* listener) const {
  NEREID_TRY_STATUS(set_limits(policy_.limits, address_space_, private_users_, !policy_.devices.empty()));
  if (listener == nullptr) return load_seccomp_filter(filter_);
  NEREID_TRY(*listener, load_seccomp_filter_with_listener(filter_));
  return ok_status();
}

}  // namespace nereid::sandbox
