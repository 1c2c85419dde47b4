// nereid-jail SPEC PROGRAM [ARGUMENT...]: starts a worker in the outer jail and sees to it that it never
// outlives its user. See outer.h.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "nereid/sandbox/layers/outer.h"

namespace nereid::sandbox {
namespace {

constexpr int kCloneFlags =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
constexpr unsigned kUnprivileged = 65534;
constexpr int kRootFailed = 199;  // the worker's exit status when its namespaces could not be furnished

bool write_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return whole;
}

// Root becomes the user 65534 in the jail, if what the worker must read is open to all; others keep their
// user.
unsigned user_inside(const OuterSpec& spec) {
  if (::geteuid() != 0) return ::geteuid();
  for (const auto& path : spec.trees) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) continue;
    const mode_t needed = S_ISDIR(info.st_mode) ? 0005 : 0004;
    if ((info.st_mode & needed) != needed) return 0;
  }
  return kUnprivileged;
}

bool map_users(pid_t worker, const OuterSpec& spec) {
  const std::string proc = "/proc/" + std::to_string(worker);
  const unsigned user = user_inside(spec), group = ::geteuid() == 0 ? user : ::getegid();
  if (::geteuid() != 0) write_file(proc + "/setgroups", "deny");
  return write_file(proc + "/uid_map", "0 " + std::to_string(user) + " 1") &&
         write_file(proc + "/gid_map", "0 " + std::to_string(group) + " 1");
}

void leave_open(int fd, int as) {
  if (fd < 0 || fd == as) return;
  ::dup2(fd, as);
  ::close(fd);
}

[[noreturn]] void run(char** program) {
  ::execv(program[0], program);
  ::fprintf(stderr, "nereid-jail: %s: %s\n", program[0], strerror(errno));
  ::_exit(127);
}

[[noreturn]] void exec_worker(const OuterSpec& spec, char** program, int go, const std::string& proc) {
  char byte = 0;
  if (::read(go, &byte, 1) != 1) ::_exit(kRootFailed);
  ::close(kLifeline);
  const int own = ::open(proc.c_str(), O_RDONLY | O_DIRECTORY);  // /proc here still shows the outer pids
  const Status entered = enter_root(spec);
  if (!entered.ok()) {
    ::fprintf(stderr, "nereid-jail: %s\n", entered.error().message.c_str());
    ::_exit(kRootFailed);
  }
  leave_open(own, kProcDescriptor);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setenv("NEREID_ISOLATION", "user mount network pid ipc", 1);
  run(program);
}

// Namespaces and the worker in them, number 1 of its own; -1 where the kernel allows none.
pid_t start_in_namespaces(const OuterSpec& spec, char** program) {
  int go[2], name[2];
  if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(name, O_CLOEXEC) != 0) return -1;
  const auto worker =
      static_cast<pid_t>(::syscall(SYS_clone, kCloneFlags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (worker == 0) {
    ::close(go[1]), ::close(name[1]);
    pid_t outer = 0;
    if (::read(name[0], &outer, sizeof outer) != sizeof outer) ::_exit(kRootFailed);
    exec_worker(spec, program, go[0], "/proc/" + std::to_string(outer));
  }
  ::close(go[0]), ::close(name[0]);
  if (worker > 0 && map_users(worker, spec)) {
    [[maybe_unused]] ssize_t said = ::write(name[1], &worker, sizeof worker);
    said = ::write(go[1], "g", 1);
  }
  ::close(go[1]), ::close(name[1]);
  return worker;
}

// Without namespaces root is root: the worker becomes 65534 for good, if that user can reach what it must
// read.
void drop_root(const OuterSpec& spec) {
  if (::geteuid() != 0) return;
  std::vector<std::string> there;
  for (const auto& path : spec.trees)
    if (::access(path.c_str(), F_OK) == 0) there.push_back(path);
  if (::setgroups(0, nullptr) != 0 || ::setegid(kUnprivileged) != 0 || ::seteuid(kUnprivileged) != 0) return;
  bool reaches_all = true;
  for (const auto& path : there) reaches_all &= ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0;
  const bool root_again = ::seteuid(0) == 0 && ::setegid(0) == 0;
  if (!reaches_all) return;
  for (const auto& folder : spec.folders)
    if (::chown(folder.c_str(), kUnprivileged, kUnprivileged) != 0) return;
  if (!root_again || ::setresgid(kUnprivileged, kUnprivileged, kUnprivileged) != 0 ||
      ::setresuid(kUnprivileged, kUnprivileged, kUnprivileged) != 0)
    ::_exit(1);
}

pid_t start_bare(const OuterSpec& spec, char** program) {
  const pid_t launcher = ::getpid();
  const pid_t worker = ::fork();
  if (worker != 0) return worker;
  ::close(kLifeline);
  drop_root(spec);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);
  leave_open(::open("/proc/self", O_RDONLY | O_DIRECTORY), kProcDescriptor);
  ::setenv("NEREID_ISOLATION", "", 1);
  run(program);
}

// Without a pid namespace whatever the worker left behind becomes ours, since this is a subreaper.
void kill_the_rest() {
  const std::string list = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  for (int round = 0; round < 1000; ++round) {
    if (FILE* file = ::fopen(list.c_str(), "re")) {
      for (int pid = 0; ::fscanf(file, "%d", &pid) == 1;) ::kill(pid, SIGKILL);
      ::fclose(file);
    }
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

// The worker's wait status, once it is gone by itself or because the lifeline was cut.
int watch(pid_t worker) {
  const int life = static_cast<int>(::syscall(SYS_pidfd_open, worker, 0));
  pollfd both[2] = {{kLifeline, POLLIN, 0}, {life, POLLIN, 0}};
  while (::poll(both, life >= 0 ? 2 : 1, life >= 0 ? -1 : 50) <= 0 || both[0].revents == 0) {
    if (both[1].revents != 0 || ::kill(worker, 0) != 0) break;
    siginfo_t gone{};
    if (::waitid(P_PID, static_cast<id_t>(worker), &gone, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        gone.si_pid != 0)
      break;
  }
  if (both[0].revents != 0) ::kill(worker, SIGKILL);
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) continue;
  if (life >= 0) ::close(life);
  return status;
}

int launch(int count, char** words) {
  if (count < 3) {
    ::fprintf(stderr, "usage: nereid-jail SPEC PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  const auto spec = outer_spec_from_json(words[1]);
  if (!spec.ok()) {
    ::fprintf(stderr, "nereid-jail: %s\n", spec.error().message.c_str());
    return 2;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGINT, SIG_IGN), ::signal(SIGTERM, SIG_IGN);  // the lifeline alone decides
  int status = kRootFailed << 8;
  pid_t worker = spec->namespaces ? start_in_namespaces(*spec, words + 2) : -1;
  if (worker > 0) status = watch(worker);
  if (worker < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == kRootFailed)) {
    worker = start_bare(*spec, words + 2);
    if (worker > 0) status = watch(worker);
  }
  kill_the_rest();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace
}  // namespace nereid::sandbox

#ifdef __SANITIZE_ADDRESS__
// The leak checker stops this process from a clone of it, as a debugger does, and waits for ever where the
// clone's end is not seen.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int main(int count, char** words) { return nereid::sandbox::launch(count, words); }
