#include "nereid/sandbox/zygote/zygote.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "nereid/sandbox/layers/compaction.h"
#include "tests/support/hostile_worker.h"

namespace nereid::sandbox {
namespace {

TEST(Zygote, AnswersAndReportsItsIsolationLayers) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 6 * 7"), 42);
  const Isolation isolation = worker.zygote().isolation(Deadline::after(60)).value();
  EXPECT_TRUE(isolation.enough()) << describe(isolation);
  std::printf("isolation: %s\n", describe(isolation).c_str());
  EXPECT_NE(worker.zygote().about(Deadline::after(60)).value().find("3."), std::string::npos);
}

TEST(Zygote, ServesManyThreadsAtOnce) {
  HostileWorker worker;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i)
        if (worker.result(fmt::format("result = {} * 1000 + {}", t, i)) == t * 1000 + i) ++right;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST(Zygote, TakesLargeRequestsAndAnswers) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = len('" + std::string(3 << 20, 'x') + "')"), 3 << 20);
  const Json answer = worker.result("result = 'y' * (3 << 20)");
  EXPECT_EQ(answer.get<std::string>().size(), 3 << 20);
}

// What a module imports may start threads, which are not there in a child.
TEST(Zygote, ServesThoughItsModuleStartedThreads) {
  HostileWorker worker;
  std::ofstream(worker.options().python_path[0] / "worst.py", std::ios::app) << R"(
def busy():
    while True:
        time.sleep(0.0005)
def warm():
    for _ in range(3):
        threading.Thread(target=busy, daemon=True).start()
    import random
    random.seed(7)
    return {}
)";
  const Json drawn = worker.result("import random\nresult = random.random()", 5);
  ASSERT_TRUE(drawn.is_number()) << drawn;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(worker.result("result = sum(range(100000)) + threading.active_count()", 5), 4999950001);
    EXPECT_EQ(worker.result("import random\nresult = random.random()", 5), drawn);  // the same numbers
  }
}

TEST(Zygote, EndsWhatTakesTooLong) {
  HostileWorker worker;
  for (const char* code : {"while True: pass", "time.sleep(1000)", "signal.pause()",
                           "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"}) {
    EXPECT_EQ(worker.result(code, 0.3), "out of time") << code;
  }
  EXPECT_EQ(worker.result("result = 1"), 1);
  EXPECT_TRUE(worker.only_these_soon(2));  // the launcher and the zygote
}

// A limit of a child is in what it has had of the machine, not in what its neighbours left of it.
TEST(Zygote, ALoadedMachineExtendsALimit) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  std::atomic<bool> done{false};
  std::vector<std::thread> hogs;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    hogs.emplace_back([&] {
      while (!done) continue;
    });
  // 0.15 s of work under a limit of 0.5 s takes longer than that here.
  EXPECT_EQ(
      worker.result("t = time.process_time()\nwhile time.process_time() - t < 0.15: pass\nresult = 1", 0.5),
      1);
  const Stopwatch watch;
  EXPECT_EQ(worker.result("while True: pass", 0.4), "out of time");
  EXPECT_GT(watch.seconds(), 0.45);
  done = true;
  for (auto& hog : hogs) hog.join();
  const Stopwatch asleep;  // what waits for nothing but itself is not spared
  EXPECT_EQ(worker.result("time.sleep(100)", 0.4), "out of time");
  EXPECT_LT(asleep.seconds(), 80);
}

TEST(Zygote, ThreadsOfAChildShareOneCore) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = len(os.sched_getaffinity(0))"), 1);
  EXPECT_EQ(worker.result("result = name_of(lambda: os.sched_setaffinity(0, range(64)))"), "PermissionError");
  // Two children at a time have two cores, where there are two.
  if (std::thread::hardware_concurrency() < 2) return;
  Json cores[2];
  std::thread other(
      [&] { cores[1] = worker.result("time.sleep(0.5)\nresult = list(os.sched_getaffinity(0))"); });
  cores[0] = worker.result("time.sleep(0.5)\nresult = list(os.sched_getaffinity(0))");
  other.join();
  EXPECT_NE(cores[0], cores[1]);
}

// The one whose deadline passes decides what it means: the caller's is never the child's fault.
TEST(Zygote, ADeadlineOfTheCallerIsAnError) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  for (const char* code : {"time.sleep(100)", "while True: pass", "os.closerange(3, 64)\ntime.sleep(100)"}) {
    const auto outcome =
        worker.zygote().run(Json{{"code", code}}.dump(), 50, Deadline::after(0.5, LimitOwner::kCaller));
    ASSERT_FALSE(outcome.ok()) << code;
    EXPECT_NE(outcome.error().message.find("the caller's budget"), std::string::npos)
        << outcome.error().message;
  }
  EXPECT_TRUE(worker.only_these_soon(2));
}

TEST(Zygote, SaysWhyAWorkerDoesNotStart) {
  HostileWorker worker;
  worker.options().module = "no_such_module";
  const auto outcome = worker.run("result = 1");
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("no_such_module"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(outcome.error().blame, Blame::kOurs);
}

// What it wrote between two forks would be copied each time, and take its huge pages apart: see fork_loop.h.
TEST(Zygote, WritesHardlyAnythingWhileItServes) {
  HostileWorker worker;
  worker.zygote().isolation(Deadline::after(60)).value();
  const auto faults = [&] {
    const int launcher = worker.zygote().launcher_pid();
    int zygote = 0;
    std::ifstream(fmt::format("/proc/{0}/task/{0}/children", launcher)) >> zygote;
    std::ifstream stat(fmt::format("/proc/{}/stat", zygote));
    std::string word;
    for (int i = 1; i < 10; ++i) stat >> word;
    int64_t minor = -1;
    stat >> minor;
    return minor;
  };
  // Compaction begins late and takes its time.
  for (int i = 0; i < kForksBeforeCompaction + 20; ++i) EXPECT_EQ(worker.result("result = 1"), 1);
  const int64_t before = faults();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(worker.result("result = 1"), 1);
  ASSERT_GT(before, 0);
  EXPECT_LT(faults() - before, 50 * 60) << "pages written for 50 requests";
}

TEST(Zygote, LeavesNoProcess) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  EXPECT_TRUE(worker.only_these_soon(2));
  worker.stop();
  EXPECT_TRUE(worker.all_gone_soon());
}

}  // namespace
}  // namespace nereid::sandbox
