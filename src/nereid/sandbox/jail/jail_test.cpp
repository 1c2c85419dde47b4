#include "nereid/sandbox/jail/jail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "nereid/sandbox/layers/privileges.h"

namespace nereid::sandbox {
namespace {

// What `body` returns in a forked child: its exit status, or 256 + the signal that ended it.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TEST(Privileges, AreGoneForGood) {
  EXPECT_EQ(in_child([] {
              if (!drop_privileges().ok()) return 1;
              __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
              __user_cap_data_struct sets[2] = {};
              if (::syscall(SYS_capget, &header, sets) != 0) return 2;
              for (const auto& set : sets)
                if ((set.effective | set.permitted | set.inheritable) != 0) return 3;
              if (::prctl(PR_GET_DUMPABLE) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 4;
              return 0;
            }),
            0);
}

TEST(Jail, HoldsAProcessOfOurs) {
  const auto jail = Jail::prepare({.readable = {"/usr"}, .limits = {.memory_bytes = 256 << 20}});
  ASSERT_TRUE(jail.ok()) << jail.error().message;
  ASSERT_TRUE(jail->before_fork().ok());
  const int status = in_child([&] {
    if (!jail->enter({}).ok()) return 1;
    if (::open("/etc/passwd", O_RDONLY) >= 0) return 2;
    if (::open("/usr/bin/env", O_RDONLY) < 0 && jail->isolation().landlock > 0) return 3;
    if (::fork() != -1) return 4;
    rlimit memory{};
    ::getrlimit(RLIMIT_AS, &memory);
    if (memory.rlim_cur == RLIM_INFINITY) return 5;
    if (jail->isolation().pid && ::getpid() != 1) return 6;
    return 0;
  });
  EXPECT_TRUE(jail->after_fork().ok());
  EXPECT_EQ(status, 0);
  EXPECT_EQ(in_child([] { return 7; }), 7);  // this process is as it was
}

TEST(Jail, LetsAWorkerTalkAndShareMemoryWhereItsPolicySaysSo) {
  const auto jail = Jail::prepare({.shared_memory = true, .messages = true});
  ASSERT_TRUE(jail.ok()) << jail.error().message;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const int status = in_child([&] {
    if (!jail->enter({ends[1]}).ok()) return 1;
    const int memory = ::memfd_create("m", 0);
    if (memory < 0 || ::ftruncate(memory, 4096) != 0) return 2;
    char byte = 'x';
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece, message.msg_iovlen = 1;
    if (::sendmsg(ends[1], &message, 0) != 1) return 3;
    return ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 4 : 0;
  });
  EXPECT_EQ(status, 0);
  char byte = 0;
  EXPECT_EQ(::recv(ends[0], &byte, 1, MSG_DONTWAIT), 1);
  ::close(ends[0]), ::close(ends[1]);
}

}  // namespace
}  // namespace nereid::sandbox
