#include "nereid/replay/host/gpu_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace nereid::replay {
namespace {

using namespace std::chrono_literals;

TEST(GpuGateTest, WhoTimesIsAlone) {
  GpuGate gate(100us);  // so that some are joined
  std::atomic<int> sharing = 0, timing = 0, wrong = 0, max_sharing = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        {
          const auto pass = gate.share();
          int now = ++sharing;
          for (int most = max_sharing; most < now && !max_sharing.compare_exchange_weak(most, now);) {
          }
          if (timing > 0) ++wrong;
          std::this_thread::sleep_for(300us);
          --sharing;
        }
        const auto pass = gate.alone();
        if (++timing > 1 || sharing > 0) ++wrong;
        std::this_thread::sleep_for(20us);
        --timing;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(max_sharing, 1);
}

TEST(GpuGateTest, ShortStepsGoOneAfterTheOtherAndALongOneIsJoined) {
  GpuGate patient(std::chrono::hours(1)), gate(100ms);
  auto inside = std::make_unique<GpuGate::Pass>(patient.share());
  auto next = std::async(std::launch::async, [&] { return patient.share(); });
  EXPECT_EQ(next.wait_for(30ms), std::future_status::timeout);
  inside.reset();  // a short step: the next goes when it ends
  (void)next.get();
  const auto first = gate.share();
  const auto begun = std::chrono::steady_clock::now();
  const auto joined = gate.share();  // while the first is inside, after its turn
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 90ms);
}

TEST(GpuGateTest, ReportsHowLongPassesWaitedAndHeld) {
  GpuGate gate;
  GpuUse first, second;
  {
    auto inside = gate.share(&first);
    auto next = std::async(std::launch::async, [&] { auto pass = gate.alone(&second); });
    std::this_thread::sleep_for(600ms);
    auto moved = std::move(inside);
    EXPECT_EQ(first.held, 0);
  }
  {
    const auto unnoticed = gate.share();
  }
  {
    const auto again = gate.alone(&first);
  }
  EXPECT_LT(first.waited, 0.5);
  EXPECT_GE(first.held, 0.6);
  EXPECT_GE(second.waited, 0.02);
  EXPECT_LT(second.held, 0.5);
}

TEST(GpuGateTest, AllWhoWaitToTimeGoBeforeAnybodyShares) {
  GpuGate gate;
  auto inside = std::make_unique<GpuGate::Pass>(gate.share());
  std::mutex mutex;
  std::string order;
  const auto note = [&](char what) {
    const std::lock_guard lock(mutex);
    order += what;
  };
  std::atomic<int> coming = 0;
  const auto time = [&] {
    ++coming;
    const auto pass = gate.alone();
    note('t');
  };
  std::thread first(time), second(time);
  while (coming < 2) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(200ms);  // both wait for the one inside
  std::thread sharer([&] {
    const auto pass = gate.share();
    note('s');
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(order, "");
  inside.reset();
  for (auto* thread : {&first, &second, &sharer}) thread->join();
  EXPECT_EQ(order, "tts");
}

// Turns of 5 ms: a pass is slow after half a second.
TEST(GpuGateTest, OthersShareWhileATimingWaitsForASlowStep) {
  GpuGate gate(5ms);
  const auto begun = std::chrono::steady_clock::now();
  auto slow = std::make_unique<GpuGate::Pass>(gate.share());
  auto timing = std::async(std::launch::async, [&] { return gate.alone(); });
  std::this_thread::sleep_for(20ms);
  for (int i = 0; i < 3; ++i) (void)gate.share();  // while the slow step is inside
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 500ms) << "it is not slow at once";
  EXPECT_EQ(timing.wait_for(0ms), std::future_status::timeout);
  // The timing also waits for passes that came meanwhile, and holds back the next ones as before.
  auto quick = std::make_unique<GpuGate::Pass>(gate.share());
  slow.reset();
  auto late = std::async(std::launch::async, [&] { return gate.share(); });
  EXPECT_EQ(late.wait_for(30ms), std::future_status::timeout);
  quick.reset();
  timing.wait();
  EXPECT_EQ(late.wait_for(30ms), std::future_status::timeout);
  (void)timing.get();
  (void)late.get();
}

TEST(GpuGateTest, ATimingHasItsTurnHoweverManySlowStepsCome) {
  GpuGate gate(100us);  // slow after 10 ms; a timing waits for 150 ms
  std::atomic<bool> ended = false;
  std::vector<std::thread> sharers;
  for (int t = 0; t < 3; ++t)
    sharers.emplace_back([&] {
      while (!ended) {
        const auto pass = gate.share();
        std::this_thread::sleep_for(40ms);
      }
    });
  std::this_thread::sleep_for(50ms);
  for (int i = 0; i < 2; ++i) {
    auto timing = std::async(std::launch::async, [&] { return gate.alone(); });
    EXPECT_EQ(timing.wait_for(10s), std::future_status::ready);
  }
  ended = true;
  for (auto& thread : sharers) thread.join();
}

}  // namespace
}  // namespace nereid::replay
