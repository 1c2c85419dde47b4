// The jail of a process that talks to a device's driver, entered in two steps, with a driver of our own: it
// starts a thread, opens its device and a socket before the second step.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "nereid/sandbox/jail/attempts.h"
#include "nereid/sandbox/jail/jail.h"
#include "nereid/sandbox/jail/libraries.h"
#include "nereid/sandbox/jail/refusals.h"

namespace nereid::sandbox {
namespace {

Policy device_policy() {
  Policy policy{
      .readable = {"/usr", "/proc/cpuinfo", "/proc/sys/vm"}, .shared_memory = true, .messages = true};
  policy.devices = {"/dev/null", "/dev/zero"};
  policy.limits.memory_bytes = 256 << 20;
  policy.limits.tasks = 64;
  return policy;
}

// What `body` says in a jailed child of this process; it is handed the jail, which it must enter.
std::string said_in_jail(const Jail& jail, const std::function<std::string(const Jail&, int report)>& body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_TRUE(jail.before_fork().ok());
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string text = body(jail, ends[1]);
    const ssize_t wrote = ::write(ends[1], text.data(), text.size());
    ::_exit(wrote == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  EXPECT_TRUE(jail.after_fork().ok());
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status)) text += fmt::format(" (signal {})", WTERMSIG(status));
  return text;
}

struct Kind {
  const char* name;
  bool namespaces, own_root, pid_namespace, landlock;
};
constexpr Kind kKinds[] = {{"OwnRoot", true, true, true, true},
                           {"OwnRootOutersPids", true, true, false, true},
                           {"OwnRootWithoutLandlock", true, true, true, false},
                           {"OwnRootOutersPidsWithoutLandlock", true, true, false, false},
                           {"Namespaces", true, false, true, true},
                           {"NamespacesWithoutLandlock", true, false, true, false},
                           {"Bare", false, false, true, true},
                           {"BareWithoutLandlock", false, false, true, false}};

class DeviceJail : public testing::TestWithParam<Kind> {
 protected:
  Jail jail() {
    Policy policy = device_policy();
    policy.namespaces = GetParam().namespaces;
    policy.own_root = GetParam().own_root;
    policy.pid_namespace = GetParam().pid_namespace;
    policy.landlock = GetParam().landlock;
    return Jail::prepare(policy).value();
  }
};

// Of the kinds that have enough isolation (StandsAsFarAsTheKernelAllows says which): no other is used.
bool is_around_files(const Kind& kind) { return kind.landlock || kind.own_root; }
class DeviceJailAroundFiles : public DeviceJail {};
std::vector<Kind> kinds_around_files() {
  std::vector<Kind> kinds;
  std::ranges::copy_if(kKinds, std::back_inserter(kinds), is_around_files);
  return kinds;
}

// As NVIDIA's driver names a thread that it has just started, and as the C library does for
// pthread_setname_np of another thread. "" where the thread is called so afterwards.
std::string name_thread(const char* how,
                        const std::function<int(std::thread&, const std::string& comm)>& set) {
  std::binary_semaphore known(0), go(0);
  pid_t id = 0;
  char called[16] = {};
  std::thread thread([&] {
    id = ::gettid();
    known.release();
    go.acquire();
    ::prctl(PR_GET_NAME, called);
  });
  known.acquire();
  const int failed = set(thread, fmt::format("/proc/self/task/{}/comm", id));
  go.release();
  thread.join();
  if (failed != 0) return fmt::format("{}: {}; ", how, strerror(failed));
  return std::string(called) == "named" ? "" : fmt::format("{}: it is called {}; ", how, called);
}

std::string name_threads() {
  return name_thread("pthread_setname_np",
                     [](std::thread& thread, const std::string&) {
                       return ::pthread_setname_np(thread.native_handle(), "named");
                     }) +
         name_thread("as a driver", [](std::thread&, const std::string& comm) {
           const int fd = ::open(comm.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
           if (fd < 0) return errno;
           const int failed = ::write(fd, "named", 5) == 5 ? 0 : errno;
           ::close(fd);
           return failed;
         });
}

// A driver fails to start where it cannot do these before the second step, and some libraries name their
// threads after it.
TEST_P(DeviceJail, LetsADriverFindAndNameItsThreads) {
  // A jail without a network namespace shares such names with tests that run at the same time.
  const std::string place = fmt::format("nereid-test-{}", ::getpid());
  const std::string said = said_in_jail(jail(), [&place](const Jail& jail, int report) -> std::string {
    if (const auto begun = jail.begin({report}); !begun.ok()) return begun.error().message;
    std::string wrong = name_threads();
    for (const char* path :
         {"/proc/self/maps", "/proc/self/task", "/proc/cpuinfo", "/proc/sys/vm/mmap_min_addr"})
      if (::open(path, O_RDONLY | O_CLOEXEC) < 0) wrong += fmt::format("{}: {}; ", path, strerror(errno));
    char target[64] = {};
    if (::readlink("/proc/self", target, sizeof target - 1) < 0 || std::atoi(target) != ::getpid())
      wrong += fmt::format("/proc/self leads to {}, this is {}; ", target, ::getpid());
    // Its place for handing over descriptors, by an abstract name.
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    place.copy(name.sun_path + 1, sizeof name.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::bind(socket, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t) + 1 + place.size()) != 0 ||
        ::listen(socket, 1) != 0)
      wrong += fmt::format("a socket of an abstract name: {}; ", strerror(errno));
    if (const auto finished = jail.finish(); !finished.ok()) return wrong + finished.error().message;
    return wrong + name_threads() + "answered";
  });
  EXPECT_EQ(said, "answered");
}

// Root's number alone, without any right, would do for writing many of the kernel's settings.
TEST_P(DeviceJailAroundFiles, KeepsSettingsOfTheKernelFromBeingWritten) {
  const std::string said = said_in_jail(jail(), [](const Jail& jail, int report) -> std::string {
    if (const auto entered = jail.enter({report}); !entered.ok()) return entered.error().message;
    std::string wrong;
    for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
                             "/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/proc/self/coredump_filter"})
      if (::open(path, O_WRONLY | O_CLOEXEC) >= 0) wrong += fmt::format("{} can be written; ", path);
    return wrong + "answered";
  });
  EXPECT_EQ(said, "answered");
}

TEST_P(DeviceJail, HoldsEveryThreadAlsoThoseADriverStarted) {
  const pid_t victim = ::getpid();
  const std::string said = said_in_jail(jail(), [&](const Jail& jail, int report) -> std::string {
    if (const auto begun = jail.begin({report}); !begun.ok()) return begun.error().message;
    if (::socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0) return "a driver gets no socket while it starts";
    std::binary_semaphore go(0);
    std::vector<Attempt> by_thread;
    std::thread driver([&] {
      go.acquire();
      by_thread = run_attempts(victim);
    });
    if (const auto finished = jail.finish(); !finished.ok()) return finished.error().message;
    const auto by_main = run_attempts(victim);
    go.release();
    driver.join();
    const bool files = jail.isolation().landlock > 0;
    return fmt::format("main {} thread {}", worked(by_main, files), worked(by_thread, files));
  });
  EXPECT_EQ(said, "main [] thread []");
}

TEST_P(DeviceJail, LeavesADriverWhatItNeeds) {
  const std::string said = said_in_jail(jail(), [](const Jail& jail, int report) -> std::string {
    if (const auto begun = jail.begin({report}); !begun.ok()) return begun.error().message;
    if (const auto finished = jail.finish(); !finished.ok()) return finished.error().message;
    const int device = ::open("/dev/zero", O_RDWR | O_CLOEXEC);
    if (device < 0) return "its device does not open";
    // The device does not know these requests, but they reach it.
    for (const unsigned long request : {0xc0104629UL, 27UL, 0x30000001UL})
      if (::ioctl(device, request, nullptr) == 0 || errno != ENOTTY)
        return fmt::format("request {:#x}: {}", request, strerror(errno));
    for (const char* path : {"/proc/self/maps", "/proc/self/status", "/usr/bin/env"})
      if (::open(path, O_RDONLY | O_CLOEXEC) < 0) return fmt::format("{}: {}", path, strerror(errno));
    void* reserved =
        ::mmap(nullptr, size_t{1} << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return "a terabyte of addresses is not to be had";
    if (::syscall(SYS_get_mempolicy, nullptr, nullptr, 0, nullptr, 0) != 0) return "get_mempolicy";
    if (::memfd_create("block", MFD_CLOEXEC) < 0) return "memfd_create";
    std::thread later([] {});
    later.join();
    return "all";
  });
  EXPECT_EQ(said, "all");
}

TEST_P(DeviceJail, BoundsWhatIsWrittenNotWhatIsReserved) {
  const std::string said = said_in_jail(jail(), [](const Jail& jail, int report) -> std::string {
    if (const auto entered = jail.enter({report}); !entered.ok()) return entered.error().message;
    const auto data = [](size_t bytes) {
      return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    };
    return fmt::format("{} {}", data(64 << 20), data(512 << 20));
  });
  EXPECT_EQ(said, "true false");
}

TEST_P(DeviceJail, SaysWhatWasRefusedWhereItIsAsked) {
  int channel[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
  const Jail jail = this->jail();
  std::unique_ptr<Refusals> refusals;
  std::thread listening([&] {
    char byte = 0;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec piece{&byte, 1};
    msghdr message{.msg_name = nullptr,
                   .msg_namelen = 0,
                   .msg_iov = &piece,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof control,
                   .msg_flags = 0};
    if (::recvmsg(channel[0], &message, 0) != 1) return;
    int listener = -1;
    std::memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
    refusals = std::make_unique<Refusals>(Fd(listener), Refusals::Answer::kRefuse);
  });
  const std::string said = said_in_jail(jail, [&](const Jail& jail, int report) -> std::string {
    int listener = -1;
    if (const auto begun = jail.begin({report, channel[1]}); !begun.ok()) return begun.error().message;
    if (const auto finished = jail.finish(&listener); !finished.ok()) return finished.error().message;
    char byte = 'x';
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec piece{&byte, 1};
    msghdr message{.msg_name = nullptr,
                   .msg_namelen = 0,
                   .msg_iov = &piece,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof control,
                   .msg_flags = 0};
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &listener, sizeof listener);
    if (::sendmsg(channel[1], &message, 0) != 1) return "sendmsg";
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = "\0nereid-test"};
    [[maybe_unused]] const int unbound =
        ::bind(-1, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t) + 12);
    name.sun_path[0] = '/';
    [[maybe_unused]] const int unconnected =
        ::connect(-1, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t) + 13);
    (void)::symlink("../from", "/there/to"), (void)::unlink("/there/file"), (void)::mkdir("/there", 0700);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const int why = errno;
    return fmt::format("{} {}", socket, strerror(why));
  });
  listening.join();
  EXPECT_EQ(said, "-1 Operation not permitted");
  ASSERT_NE(refusals, nullptr);
  const auto asked = refusals->asked();
  std::string text;
  for (const auto& [one, times] : asked) text += fmt::format("{} {}; ", one.call, one.what);
  EXPECT_EQ(asked.count({"socket", "(0x2, 0x1)", 0}), 1U) << text;
  if (::geteuid() != 0) GTEST_SKIP() << "only root may look into a jailed process";
  EXPECT_EQ(text,
            "bind unix @nereid-test; connect unix /nereid-test; mkdir /there; socket (0x2, 0x1); "
            "symlink ../from -> /there/to; unlink /there/file; ");
  ::close(channel[0]), ::close(channel[1]);
}

TEST(LibraryFolders, HoldWhatIsLoadedAndItsFamily) {
  const auto folders = library_folders();
  const auto holds_libc = [](const std::string& folder) {
    return ::access((folder + "/libc.so.6").c_str(), F_OK) == 0;
  };
  EXPECT_TRUE(std::any_of(folders.begin(), folders.end(), holds_libc)) << fmt::format("{}", folders);
  EXPECT_EQ(with_its_family("/v/lib/python3.11/site-packages/nvidia/cudnn/lib"),
            "/v/lib/python3.11/site-packages/nvidia");
  EXPECT_EQ(with_its_family("/v/lib/python3.11/site-packages/torch/lib"),
            "/v/lib/python3.11/site-packages/torch/lib");
}

TEST_P(DeviceJail, StandsAsFarAsTheKernelAllows) {
  const Isolation isolation = jail().isolation();
  EXPECT_EQ(isolation.enough(), is_around_files(GetParam())) << describe(isolation);
  EXPECT_EQ(isolation.mount, GetParam().own_root) << describe(isolation);
  // Users other than root have no pid namespace without an outer jail.
  const bool has_pids = GetParam().own_root && GetParam().pid_namespace && ::geteuid() == 0;
  EXPECT_EQ(isolation.pid, has_pids) << describe(isolation);
}

// That nothing works in a jail says something only where it works outside.
TEST(Attempts, WorkOutside) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::unlink("/tmp/nereid-escape");
    const auto names = worked(run_attempts(::getppid()));
    ::unlink("/tmp/nereid-escape"), ::unlink("/dev/shm/nereid-escape");
    ::_exit(static_cast<int>(names.size()));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_GT(WEXITSTATUS(status), 20);
}

INSTANTIATE_TEST_SUITE_P(Isolation, DeviceJail, testing::ValuesIn(kKinds),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Isolation, DeviceJailAroundFiles, testing::ValuesIn(kinds_around_files()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nereid::sandbox
