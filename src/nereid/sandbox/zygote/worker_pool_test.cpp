#include "nereid/sandbox/zygote/worker_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "nereid/base/program/interrupt.h"
#include "tests/support/hostile_worker.h"

namespace nereid::sandbox {
namespace {

class WorkerPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1);
    keep_for("20");
  }
  void TearDown() override { ::unsetenv("NEREID_KEEP_WARM"), ::unsetenv("XDG_RUNTIME_DIR"); }

  static void keep_for(const char* seconds) { ::setenv("NEREID_KEEP_WARM", seconds, 1); }
  // Of a command that runs `code` and ends: its worker's launcher.
  static int command(HostileWorker& worker, const std::string& code = "result = 1") {
    worker.result(code, 0.5);
    const int launcher = worker.zygote().launcher_pid();
    worker.stop();
    return launcher;
  }
  static bool gone_soon(int pid) {
    for (int i = 0; i < 10000; ++i) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string number, name, state;
      if (!(stat >> number >> name >> state) || state == "Z") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  TemporaryFolder runtime_ = TemporaryFolder::create("nereid-worker-pool").value();
};

TEST_F(WorkerPoolTest, TheNextCommandTakesWhatTheLastOneLeft) {
  HostileWorker worker;
  const int first = command(worker, "result = 1");
  ASSERT_GT(first, 0);
  EXPECT_EQ(worker.result("result = 6 * 7"), 42);
  EXPECT_EQ(worker.zygote().launcher_pid(), first);
  EXPECT_TRUE(worker.zygote().isolation(Deadline::after(60)).value().enough());
  EXPECT_NE(worker.zygote().about(Deadline::after(60)).value().find("3."), std::string::npos);
  // No other command gets it meanwhile.
  auto other = Zygote::start(worker.options()).value();
  EXPECT_NE(other->launcher_pid(), first);
  other.reset();
  EXPECT_EQ(command(worker, "os._exit(3)"), first);
  keep_for("0");
  EXPECT_NE(command(worker), first);
}

TEST_F(WorkerPoolTest, AChildThatWasEndedByForceIsNoReasonNotToKeep) {
  HostileWorker worker;
  const int first = command(worker, "while True: pass");
  EXPECT_EQ(command(worker), first);
}

TEST_F(WorkerPoolTest, AnInterruptedCommandLeavesItsWorker) {
  HostileWorker worker;
  const auto launcher = runtime_.path() / "launcher";
  const pid_t interrupted_command = ::fork();  // a process of its own: an interrupt is never taken back
  if (interrupted_command == 0) {
    watch_for_interrupts();
    worker.result("result = 1");
    std::ofstream(launcher) << worker.zygote().launcher_pid();
    std::thread signal([] {
      ::usleep(200000);
      ::raise(SIGINT);
    });
    (void)worker.run("time.sleep(1000)");
    signal.join();
    worker.stop();
    ::_exit(interrupted() ? 0 : 1);
  }
  int status = 1, first = 0;
  ASSERT_EQ(::waitpid(interrupted_command, &status, 0), interrupted_command);
  EXPECT_EQ(status, 0);
  std::ifstream(launcher) >> first;
  EXPECT_EQ(command(worker), first);
}

TEST_F(WorkerPoolTest, OtherFilesAreAnotherWorker) {
  HostileWorker worker;
  const int first = command(worker);
  std::ofstream(worker.options().python_path[0] / "worst.py", std::ios::app) << "# changed\n";
  EXPECT_NE(command(worker), first);
}

// Those of the Python package lie in folders of their own (_tracer, _worker).
TEST_F(WorkerPoolTest, OtherSourcesInAFolderOfThePackageAreAnotherWorker) {
  HostileWorker worker;
  const TemporaryFolder copy = TemporaryFolder::create("nereid-package").value();
  std::filesystem::permissions(copy.path(), std::filesystem::perms(0755));
  const auto package = copy.path() / "nereid";
  std::filesystem::copy(worker.options().installation.package, package,
                        std::filesystem::copy_options::recursive);
  worker.options().installation.package = package;
  const int first = command(worker);
  EXPECT_EQ(command(worker), first);
  std::ofstream(package / "_tracer" / "operators.py", std::ios::app) << "# changed\n";
  EXPECT_NE(command(worker), first);
}

// A worker whose launcher was killed may answer once more before it is gone.
int launcher_after(HostileWorker& worker, int killed) {
  for (int i = 0; i < 3000 && worker.zygote().launcher_pid() == killed; ++i) {
    EXPECT_EQ(worker.result("result = 1"), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return worker.zygote().launcher_pid();
}

TEST_F(WorkerPoolTest, ALostWorkerIsNotKept) {
  HostileWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  const int first = worker.zygote().launcher_pid();
  ::kill(first, SIGKILL);
  const int second = launcher_after(worker, first);
  EXPECT_NE(second, first);
  worker.stop();
  // ... nor one that is lost while it waits.
  ::kill(second, SIGKILL);
  EXPECT_NE(launcher_after(worker, second), second);
}

TEST_F(WorkerPoolTest, NoWorkerStaysLongerThanRequested) {
  keep_for("0.3");
  HostileWorker worker;
  EXPECT_TRUE(gone_soon(command(worker)));
}

// It is the worker's as long as the worker is kept, and goes with it.
TEST_F(WorkerPoolTest, AScratchFolderIsKeptWithItsWorker) {
  HostileWorker worker;
  worker.options().needs_scratch = true;
  const TemporaryFolder temporary = TemporaryFolder::create("nereid-temporary").value();
  std::filesystem::permissions(temporary.path(), std::filesystem::perms(0755));
  ::setenv("TMPDIR", temporary.path().c_str(), 1);
  const auto folders = [&] {
    const std::filesystem::directory_iterator all(temporary.path());
    return std::distance(begin(all), end(all));
  };
  const std::string code = "open('file', 'w').write('text'); result = os.listdir('.')";
  EXPECT_EQ(worker.result(code), Json::array({"file"}));
  const int first = command(worker);
  EXPECT_EQ(folders(), 1);
  keep_for("0.3");
  EXPECT_EQ(worker.result(code), Json::array({"file"}));
  EXPECT_EQ(worker.zygote().launcher_pid(), first);
  worker.stop();
  EXPECT_TRUE(gone_soon(first));
  for (int i = 0; i < 10000 && folders() != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(folders(), 0);
  ::unsetenv("TMPDIR");
}

TEST_F(WorkerPoolTest, AFolderThatOthersMayEnterIsNotUsed) {
  ::mkdir((runtime_.path() / "nereid").c_str(), 0700);
  ASSERT_EQ(::chmod((runtime_.path() / "nereid").c_str(), 0755), 0);
  HostileWorker worker;
  EXPECT_TRUE(gone_soon(command(worker)));
}

TEST_F(WorkerPoolTest, OnlyANumberOfSecondsKeeps) {
  for (const char* no : {"", "0", "-1", "soon", "1e9", "60s"}) {
    keep_for(no);
    EXPECT_EQ(seconds_kept_warm(), 0) << no;
  }
  keep_for("1.5");
  EXPECT_EQ(seconds_kept_warm(), 1.5);
}

}  // namespace
}  // namespace nereid::sandbox
