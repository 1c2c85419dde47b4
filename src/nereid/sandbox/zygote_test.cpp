#include "nereid/sandbox/zygote.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "nereid/sandbox/worst_worker.h"

namespace nereid::sandbox {
namespace {

TEST(Zygote, AnswersAndSaysWhichWallsStand) {
  WorstWorker worker;
  EXPECT_EQ(worker.result("result = 6 * 7"), 42);
  const Walls walls = worker.zygote().walls(Deadline::after(60)).value();
  EXPECT_TRUE(walls.enough()) << describe(walls);
  std::printf("walls: %s\n", describe(walls).c_str());
  EXPECT_NE(worker.zygote().about(Deadline::after(60)).value().find("3."), std::string::npos);
}

TEST(Zygote, ServesManyThreadsAtOnce) {
  WorstWorker worker;
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
  WorstWorker worker;
  EXPECT_EQ(worker.result("result = len('" + std::string(3 << 20, 'x') + "')"), 3 << 20);
  const Json answer = worker.result("result = 'y' * (3 << 20)");
  EXPECT_EQ(answer.get<std::string>().size(), 3 << 20);
}

TEST(Zygote, EndsWhatTakesTooLong) {
  WorstWorker worker;
  for (const char* code : {"while True: pass", "time.sleep(1000)", "signal.pause()",
                           "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"}) {
    EXPECT_EQ(worker.result(code, 0.3), "out of time") << code;
  }
  EXPECT_EQ(worker.result("result = 1"), 1);
  EXPECT_TRUE(worker.only_these_soon(2));  // the launcher and the zygote
}

TEST(Zygote, SaysWhyAWorkerDoesNotStart) {
  WorstWorker worker;
  worker.options().module = "no_such_module";
  const auto outcome = worker.run("result = 1");
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("no_such_module"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(outcome.error().blame, Blame::kOurs);
}

TEST(Zygote, LeavesNoProcess) {
  WorstWorker worker;
  EXPECT_EQ(worker.result("result = 1"), 1);
  EXPECT_TRUE(worker.only_these_soon(2));
  worker.stop();
  EXPECT_TRUE(worker.all_gone_soon());
}

}  // namespace
}  // namespace nereid::sandbox
