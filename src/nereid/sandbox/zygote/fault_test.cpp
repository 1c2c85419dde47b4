// Everything that can break while a request is under way, broken: the right outcome or an Error, nothing
// lost, no process left.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "tests/support/hostile_worker.h"

namespace nereid::sandbox {
namespace {

// Code that writes `bytes` (a Python expression) to the answer's pipe itself.
std::string write_raw(const std::string& bytes, const std::string& then = "os._exit(0)") {
  return "pipe = max(fd for fd in range(3, 64) if name_of(lambda: os.fstat(fd)) != 'OSError')\n"
         "os.write(pipe, " +
         bytes + ")\n" + then;
}

std::string says(const Result<Outcome>& outcome) {
  if (!outcome.ok()) return "error: " + outcome.error().message;
  if (auto* killed = std::get_if<Killed>(&*outcome)) return killed->limit;
  if (std::holds_alternative<OutOfTime>(*outcome)) return "out of time";
  return std::get<Answer>(*outcome).bytes;
}

// The zygote: the one child of the launcher.
int zygote_of(HostileWorker& worker) {
  const int launcher = worker.zygote().launcher_pid();
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", launcher));
  int pid = 0;
  children >> pid;
  return pid;
}

TEST(Fault, AnswersThatAreNone) {
  HostileWorker worker;
  EXPECT_EQ(says(worker.run(write_raw("b''"))), "it ended with status 0 and no answer");
  EXPECT_EQ(says(worker.run(write_raw("b'\\x05\\0\\0'"))), "it ended with status 0 and no answer");
  EXPECT_EQ(says(worker.run(write_raw("b'\\x05' + bytes(7) + b'abc'"))),
            "it ended with status 0 and no answer");
  EXPECT_EQ(says(worker.run(write_raw("b'\\x03' + bytes(7) + b'abc'"))), "abc");
  EXPECT_EQ(says(worker.run(write_raw("b'\\x03' + bytes(7) + b'abcdefg'"))), "abc");
  EXPECT_EQ(says(worker.run(write_raw("bytes(8)"))), "");
  EXPECT_EQ(says(worker.run(write_raw("b'\\xff' * 8"))), "its answer was larger than 4194304 bytes");
  EXPECT_EQ(says(worker.run(write_raw("b'\\xff' * 8", "while True: os.write(pipe, b'x' * 65536)"))),
            "its answer was larger than 4194304 bytes");
  EXPECT_EQ(says(worker.run("result = 'x' * (5 << 20)")), "its answer was larger than 4194304 bytes");
  EXPECT_TRUE(worker.only_these_soon(2));
}

TEST(Fault, PipesThatAreCut) {
  HostileWorker worker;
  EXPECT_EQ(says(worker.run(write_raw("b'abc'", "os.close(pipe)\nos._exit(9)"))),
            "it ended with status 9 and no answer");
  EXPECT_EQ(says(worker.run(write_raw("b'abc'", "os.close(pipe)\nwhile True: pass"), 0.5)), "out of time");
  EXPECT_EQ(says(worker.run(write_raw("b'\\x03' + bytes(7) + b'ab'", "time.sleep(1000)"), 0.5)),
            "out of time");
  EXPECT_TRUE(worker.only_these_soon(2));
}

TEST(Fault, WaysToDie) {
  HostileWorker worker;
  worker.options().limits.cpu_seconds = 2;
  EXPECT_NE(says(worker.run("ctypes.string_at(0)")).find("signal 11"), std::string::npos);
  EXPECT_NE(says(worker.run("sys.setrecursionlimit(1 << 30)\nclass A:\n    def __getattr__(self, n): return "
                            "getattr(self, n)\nA().x"))
                .find("signal 11"),
            std::string::npos);
  EXPECT_EQ(says(worker.run("while True: pass", 100)), "out of time");
  EXPECT_EQ(says(worker.run("os._exit(42)")), "it ended with status 42 and no answer");
  EXPECT_NE(says(worker.run("raise SystemExit(3)")).find("SystemExit"), std::string::npos);
  EXPECT_NE(says(worker.run("x = []\nx.append(x)\nresult = x")).find("failed"), std::string::npos);
  EXPECT_EQ(worker.result("result = 1"), 1);
}

TEST(Fault, AZygoteThatIsKilledIsReplacedAndNothingIsLost) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  for (const bool launcher : {false, true}) {
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back(
          [&, t] { right += worker.result(fmt::format("time.sleep(0.4)\nresult = {}", t)) == t; });
    ::usleep(200000);
    const int victim = launcher ? worker.zygote().launcher_pid() : zygote_of(worker);
    ASSERT_GT(victim, 1);
    EXPECT_EQ(::kill(victim, SIGKILL), 0);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 4);
    EXPECT_TRUE(worker.only_these_soon(2));
  }
}

// The children of the zygote.
std::vector<int> children_of_zygote(HostileWorker& worker) {
  const int zygote = zygote_of(worker);
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", zygote));
  std::vector<int> pids;
  for (int pid = 0; file >> pid;) pids.push_back(pid);
  return pids;
}

TEST(Fault, AChildThatIsKilledOnceIsTriedAgain) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  for (const size_t kills : {1, 2}) {
    std::atomic<bool> done{false};
    size_t killed = 0;
    std::thread killer([&] {
      for (int last = 0; !done && killed < kills; ::usleep(20000))
        for (const int pid : children_of_zygote(worker))
          if (pid != last && killed < kills) {
            ::usleep(200000);  // into its work
            if (::kill(last = pid, SIGKILL) == 0) ++killed;
          }
    });
    const auto outcome = worker.run("time.sleep(3)\nresult = 7");
    done = true;
    killer.join();
    EXPECT_EQ(killed, kills);
    // Whatever killed it twice is outside of its jail: no word about what it was asked to run.
    const std::string expected =
        kills == 1 ? R"({"result": 7})" : "error: a child of the worst worker was killed twice";
    EXPECT_TRUE(says(outcome).starts_with(expected)) << says(outcome);
    EXPECT_TRUE(worker.only_these_soon(2));
  }
}

// A worker on its way out refuses requests a while before its end is heard of: here it closes its ears once
// it is warm, and ends only when the file is gone.
TEST(Fault, AZygoteThatIsStillDyingIsNotMetAgain) {
  HostileWorker worker;
  const auto dying = worker.folder() / "dying";
  std::ofstream(dying) << "yes";
  std::ofstream(worker.folder() / "worst.py", std::ios::app) << fmt::format(R"(
import atexit
def warm():
    if os.path.exists({0:?}):
        socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RD)
        atexit.register(lambda: [time.sleep(0.01) for _ in iter(lambda: os.path.exists({0:?}), False)])
    return {{}}
)",
                                                                            dying.string());
  ASSERT_TRUE(worker.zygote().isolation(Deadline::after(60)).ok());
  const int first = worker.zygote().launcher_pid();
  std::thread end([&] {
    ::usleep(300000);
    std::filesystem::remove(dying);
  });
  EXPECT_EQ(worker.result("result = 1"), 1);
  end.join();
  EXPECT_NE(worker.zygote().launcher_pid(), first);
  EXPECT_TRUE(worker.only_these_soon(2));
}

// A killer of all of a worker's processes, one by one, takes the child first, and then its replacement.
TEST(Fault, AChildKilledAndThenItsZygoteIsOneLoss) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  EXPECT_TRUE(worker.only_these_soon(2));  // none on its way out
  const int zygote = zygote_of(worker);
  std::atomic<bool> done{false};
  int kills = 0;
  std::thread killer([&] {
    for (int last = 0; !done && kills < 2; ::usleep(20000)) {
      const auto children = children_of_zygote(worker);
      if (children.empty() || children[0] == last) continue;
      ::usleep(200000);  // into its work
      if (::kill(kills == 0 ? children[0] : zygote, SIGKILL) == 0) ++kills;
      last = children[0];
    }
  });
  const auto outcome = worker.run("time.sleep(3)\nresult = 7");
  done = true;
  killer.join();
  EXPECT_EQ(kills, 2);
  EXPECT_EQ(says(outcome), R"({"result": 7})");
  EXPECT_TRUE(worker.only_these_soon(2));
}

TEST(Fault, AZygoteThatIsLostTwiceIsAnError) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  std::atomic<bool> done{false};
  std::thread killer([&] {
    for (int last = 0; !done; ::usleep(20000))
      if (const int pid = zygote_of(worker); pid > 1 && pid != last) ::kill(last = pid, SIGKILL);
  });
  const auto outcome = worker.run("time.sleep(5)\nresult = 1");
  done = true;
  killer.join();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().blame, Blame::kOurs);
  EXPECT_EQ(worker.result("result = 2"), 2);
}

TEST(Fault, AZygoteThatHangsBeforeItIsWarmIsAnError) {
  HostileWorker worker;
  std::ofstream(worker.folder() / "slow.py") << "import time\ndef warm(): time.sleep(1000)\n";
  worker.options().module = "slow";
  worker.options().start_seconds = 0.5;
  const auto outcome = worker.run("result = 1");
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("not warm in time"), std::string::npos) << outcome.error().message;
  worker.stop();
  EXPECT_TRUE(worker.all_gone_soon());
}

TEST(Fault, WarmCodeThatDiesSaysItsLastWords) {
  HostileWorker worker;
  std::ofstream(worker.folder() / "sick.py") << "def warm(): raise ValueError('no libtorch here')\n";
  worker.options().module = "sick";
  const auto outcome = worker.run("result = 1");
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("no libtorch here"), std::string::npos) << outcome.error().message;
}

// The judge dies without a chance to clean up, with requests under way and processes started by them.
TEST(Fault, NothingOutlivesTheJudge) {
  for (const bool namespaces : {true, false}) {
    HostileWorker worker(namespaces);
    worker.options().executables = {"bin/sleep"};
    const std::string sleeper = worker.folder().string();  // the name it shows, by which it is found
    const pid_t judge = ::fork();
    if (judge == 0) {
      std::thread([&] { worker.result("while True: pass", 100); }).detach();
      worker.result("import subprocess\nsubprocess.Popen(['" + sleeper +
                        "', '1000'], executable='/usr/bin/sleep')\nos.fork()\ntime.sleep(1000)",
                    100);
      ::_exit(0);
    }
    EXPECT_TRUE(worker.only_these_soon(6));  // launcher, zygote, two children, a fork, the sleep
    ::kill(judge, SIGKILL);
    ::waitpid(judge, nullptr, 0);
    EXPECT_TRUE(worker.all_gone_soon()) << namespaces;
  }
}

// What a child that may run programs starts is gone with it, also when it ended well.
TEST(Fault, DaemonsDieWithTheChildThatStartedThem) {
  for (const bool namespaces : {true, false}) {
    HostileWorker worker(namespaces);
    worker.options().executables = {"bin/sleep"};
    EXPECT_EQ(
        worker.result(
            "for i in range(3):\n    if os.fork() == 0:\n        name_of(os.setsid)\n        os.fork()\n"
            "        while True: time.sleep(1)\nresult = 1"),
        1);
    EXPECT_TRUE(worker.only_these_soon(2)) << namespaces;
    EXPECT_EQ(worker.result("if os.fork() == 0:\n    while True: time.sleep(1)\nwhile True: pass", 0.5),
              "out of time");
    EXPECT_TRUE(worker.only_these_soon(2)) << namespaces;
    const Json others =
        worker.result("result = [name_of(lambda: os.execv(p, [p])) for p in ('/usr/bin/env', '/bin/sh')]");
    EXPECT_EQ(others, (Json{"PermissionError", "PermissionError"}));
  }
}

TEST(Fault, AForkBombIsBounded) {
  HostileWorker worker;
  worker.options().executables = {"bin/sleep"};
  if (!worker.zygote().isolation(Deadline::after(60))->pid)
    GTEST_SKIP() << "a child's tasks are not counted apart here";
  const Json forks = worker.result(
      "count = 0\ntry:\n    while count < 5000:\n        if os.fork() == 0: time.sleep(1000)\n"
      "        count += 1\nexcept OSError: pass\nresult = count");
  ASSERT_TRUE(forks.is_number()) << forks;
  EXPECT_LE(forks.get<int>(), 64);
  worker.result("while True: os.fork()", 1);
  EXPECT_TRUE(worker.only_these_soon(2));
  EXPECT_EQ(worker.result("result = 1"), 1);
}

}  // namespace
}  // namespace nereid::sandbox
