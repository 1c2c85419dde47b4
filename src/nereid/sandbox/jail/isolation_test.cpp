// Real attempts at every wall, by a jailed child, with namespaces and without.
#include <gtest/gtest.h>

#include "tests/support/hostile_worker.h"

namespace nereid::sandbox {
namespace {

class IsolationTest : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() {
    for (bool namespaces : {false, true}) workers_[namespaces] = std::make_unique<HostileWorker>(namespaces);
  }
  static void TearDownTestSuite() {
    for (auto& worker : workers_) worker.reset();
  }
  HostileWorker& worker() { return *workers_[GetParam()]; }
  Json result(const std::string& code, double seconds = 30) { return worker().result(code, seconds); }
  bool has_scratch() { return worker().zygote().isolation(Deadline::after(60)).value().scratch; }
  // Every name is an exception's, and none is what the attempt would have returned.
  void expect_refused(const Json& names) {
    ASSERT_TRUE(names.is_array()) << names;
    for (const Json& name : names)
      EXPECT_NE(name.get<std::string>().find("Error"), std::string::npos) << names;
  }

  static std::unique_ptr<HostileWorker> workers_[2];
};
std::unique_ptr<HostileWorker> IsolationTest::workers_[2];

TEST_P(IsolationTest, NoNetwork) {
  expect_refused(
      result("result = [name_of(lambda: socket.socket(f, t)) for f in (socket.AF_INET, socket.AF_INET6, "
             "socket.AF_UNIX, socket.AF_NETLINK) for t in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]"
             " + [name_of(socket.socketpair)]"));
}

TEST_P(IsolationTest, NoFilesOfOthers) {
  const auto secret = TemporaryFolder::create("secret").value();
  std::ofstream(secret.path() / "answer") << "42";
  std::filesystem::permissions(secret.path(), std::filesystem::perms(0755));
  expect_refused(
      result(fmt::format("result = [name_of(lambda: open(p).read()) for p in ('/etc/passwd', '/etc/shadow', "
                         "'/proc/self/environ', '/proc/1/cmdline', '/proc/cpuinfo', '{}/answer', '/dev/mem', "
                         "'/sys/kernel/notes', "
                         "'/root/.bashrc')]",
                         secret.path().string())));
  expect_refused(
      result("result = [name_of(lambda: os.listdir(p)) for p in ('/home', '/root', '/proc', '/etc', '/var', "
             "'/sys')]"));
}

TEST_P(IsolationTest, NothingIsWritten) {
  expect_refused(result(
      "import site\nresult = [name_of(lambda: open(p, 'w')) for p in ('/x', '/usr/x', '/etc/x', '/tmp/x', "
      "'/dev/x', "
      "'/dev/shm/x', site.getsitepackages()[0] + '/x.pth', os.path.dirname(sys.modules['nereid'].__file__ or "
      "sys.modules['nereid'].__path__[0]) + '/x.py')]"));
  expect_refused(result(
      "result = [name_of(lambda: os.unlink('/usr/bin/python3')), name_of(lambda: os.mkdir('/usr/x')), "
      "name_of(lambda: os.rename('/usr/lib', '/usr/bil')), name_of(lambda: os.chmod('/usr/bin', 0o777)), "
      "name_of(lambda: os.truncate(os.__file__, 0)), name_of(lambda: os.symlink('/', '/usr/x')), "
      "name_of(lambda: os.utime(os.__file__)), name_of(lambda: os.open(os.__file__, os.O_RDWR))]"));
}

TEST_P(IsolationTest, TheScratchFolderIsPrivateEmptyAndSmall) {
  if (!has_scratch()) {
    expect_refused(
        result("result = [name_of(lambda: open('x', 'w')), name_of(lambda: open('/scratch/x', 'w'))]"));
    return;
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(result("result = os.listdir('.')\nopen('left', 'w').write('here')"), Json::array());
  const Json filled = result(R"(
total = 0
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    for i in range(1000):
        with open(f'f{i}', 'wb', buffering=0) as file:
            while True: total += file.write(b'x' * 65536)
except OSError as problem:
    pass
for i in range(1000, 20000):
    try: open(f'f{i}', 'w').close()
    except OSError: break
result = [total, i])");
  ASSERT_TRUE(filled.is_array()) << filled;
  EXPECT_LE(filled[0].get<int64_t>(), 8 << 20);
  EXPECT_LT(filled[1].get<int64_t>(), 10000);
  EXPECT_NE(result("signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                   "result = name_of(lambda: open('big', 'wb', buffering=0).truncate(1 << 30))"),
            "1073741824");
  expect_refused(
      result("open('x.py', 'w').write('#!/bin/sh\\n')\nos.chmod('x.py', 0o777)\n"
             "result = [name_of(lambda: os.execv('./x.py', ['x']))]"));
}

TEST_P(IsolationTest, MemoryIsBounded) {
  EXPECT_EQ(result("result = name_of(lambda: len(bytearray(100 << 30)))"), "MemoryError");
  EXPECT_EQ(result("import mmap\nresult = name_of(lambda: len(mmap.mmap(-1, 100 << 30)))"), "OSError");
  const Json taken = result(
      "taken = []\ntry:\n    while True: taken.append(bytearray(8 << 20))\n"
      "except MemoryError:\n    result = len(taken)\n    taken.clear()");
  ASSERT_TRUE(taken.is_number()) << taken;
  EXPECT_LE(taken.get<int>(), 64);
  // Nor does memory outside any address space help.
  EXPECT_EQ(
      result(
          "result = [system_call(319, b'm', 0), system_call(29, 0, 1 << 30, 0o1600), system_call(447, 0)]"),
      (Json{"ENOSYS", "EPERM", "ENOSYS"}));
  EXPECT_EQ(result("resource.setrlimit(resource.RLIMIT_AS, (-1, -1))").contains("failed"), true);
}

TEST_P(IsolationTest, NoProcessesAndFewThreads) {
  expect_refused(
      result("result = [name_of(os.fork), name_of(lambda: os.execv('/bin/true', ['true'])), "
             "name_of(lambda: os.posix_spawn('/bin/true', ['true'], {})), "
             "name_of(lambda: __import__('subprocess').run(['/bin/true']))]"));
  EXPECT_EQ(result("result = [system_call(57), system_call(58), system_call(56, 17, 0, 0, 0, 0)]"),
            (Json{"EPERM", "EPERM", "ENOSYS"}));
  if (!GetParam()) return;  // without a user namespace the limit of tasks counts all of the user's
  const Json threads = result(R"(
count = 0
threading.stack_size(64 << 10)
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
except RuntimeError: pass
result = count)");
  ASSERT_TRUE(threads.is_number()) << threads;
  EXPECT_GT(threads.get<int>(), 8);
  EXPECT_LE(threads.get<int>(), 64);
}

TEST_P(IsolationTest, NoOtherProcessCanBeReached) {
  result(
      "for p in (os.getppid(), 1, 0, -1):\n    for s in (9, 15, 2): name_of(lambda: os.kill(p, s))\nresult = "
      "1");
  EXPECT_EQ(result("result = 1"), 1);  // the zygote lives
  EXPECT_EQ(result(fmt::format("result = name_of(lambda: os.kill({}, 9))", ::getpid()))
                    .get<std::string>()
                    .find("Error") != std::string::npos,
            true);
  // ptrace, process_vm_readv and writev, pidfd_open, kcmp
  EXPECT_EQ(result(fmt::format("result = [system_call(101, 0, 0, 0, 0), system_call(101, 16, {0}, 0, 0), "
                               "system_call(310, {0}, 0, 0, 0, 0, 0), "
                               "system_call(311, {0}, 0, 0, 0, 0, 0), system_call(434, {0}, 0), "
                               "system_call(312, 1, {0}, 0, 0, 0)]",
                               ::getpid())),
            Json(std::vector<std::string>(6, "EPERM")));
}

TEST_P(IsolationTest, TheKernelsDoorsAreShut) {
  // mount, umount2, pivot_root, chroot, unshare, setns, bpf, kexec_load, init_module, perf_event_open,
  // userfaultfd, keyctl, add_key, open_by_handle_at, setuid, capset, personality, seccomp, mknod,
  // prctl(PR_SET_DUMPABLE), sethostname
  EXPECT_EQ(result("result = sorted({system_call(n, a, 0, 0, 0, 0) for n, a in ((165, 0), (166, 0), (155, "
                   "0), (161, 0), (272, 0x10000000), "
                   "(308, 0), (321, 0), (246, 0), (175, 0), (298, 0), (323, 0), (250, 0), (248, 0), (304, "
                   "0), (105, 0), (126, 0), "
                   "(135, 0), (317, 0), (133, 0), (170, 0))})"),
            Json{"EPERM"});
  // io_uring_setup, open_tree, fsopen, clone3, prctl(PR_SET_DUMPABLE), prctl(PR_SET_PDEATHSIG)
  EXPECT_EQ(result("result = [system_call(425, 1, 0), system_call(428, 0, 0, 0), system_call(430, 0, 0), "
                   "system_call(435, 0, 0), "
                   "system_call(157, 4, 1), system_call(157, 1, 0)]"),
            Json(std::vector<std::string>(6, "ENOSYS")));
}

TEST_P(IsolationTest, OnlyTheAnswersDescriptorIsOpen) {
  const Json open = result(R"(
result = []
for fd in range(1024):
    try: os.fstat(fd); result.append(fd)
    except OSError: pass)");
  ASSERT_EQ(open.size(), 4) << open;  // 0, 1 and 2 are /dev/null
  EXPECT_EQ(result("print('forged' * 100000)\nsys.stderr.write('forged' * 100000)\nresult = 1"), 1);
}

TEST_P(IsolationTest, NothingIsLeftBehind) {
  EXPECT_EQ(
      result("def stay():\n    while True: time.sleep(1)\nthreading.Thread(target=stay).start()\nresult = 1"),
      1);
  EXPECT_TRUE(worker().only_these_soon(2));
}

INSTANTIATE_TEST_SUITE_P(Namespaces, IsolationTest, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "All" : "None"; });

}  // namespace
}  // namespace nereid::sandbox
