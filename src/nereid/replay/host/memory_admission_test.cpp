#include "nereid/replay/host/memory_admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace nereid::replay {
namespace {

using namespace std::chrono_literals;

class MemoryTurnsTest : public testing::Test {
 protected:
  MemoryTurns::Turn take(int64_t need, double seconds = 30) {
    auto turn = turns_->take(
        need, [this]() -> Result<int64_t> { return free_.load(); }, Deadline::after(seconds));
    EXPECT_TRUE(turn.ok()) << turn.error().message;
    return turn.ok() ? *turn : MemoryTurns::Turn{};
  }
  std::future<MemoryTurns::Turn> ask(int64_t need) {
    return std::async(std::launch::async, [this, need] { return take(need); });
  }
  std::shared_ptr<MemoryTurns> turns_ = std::make_shared<MemoryTurns>();
  std::atomic<int64_t> free_ = 100;
};

TEST_F(MemoryTurnsTest, WhoFitsBesideOthersGoesAtOnce) {
  const auto first = take(40), second = take(60);
  EXPECT_TRUE(first.held && second.held);
  EXPECT_EQ(second.capacity, 100);
}

TEST_F(MemoryTurnsTest, WhoDoesNotFitBesideOthersWaitsForThem) {
  auto first = take(40);
  free_ = 60;  // it made what it said
  auto second = ask(70);
  EXPECT_EQ(second.wait_for(250ms), std::future_status::timeout);
  free_ = 100;
  first.held.reset();
  EXPECT_TRUE(second.get().held);
}

TEST_F(MemoryTurnsTest, WhoWouldNotFitAloneIsToldWhatThereIs) {
  const auto turn = take(101);
  EXPECT_FALSE(turn.held);
  EXPECT_EQ(turn.capacity, 100);
  const auto beside = take(10);
  EXPECT_FALSE(take(101).held) << "and does not wait for others to end";
  EXPECT_TRUE(take(90).held);
}

TEST_F(MemoryTurnsTest, WhatComesBackLateIsWaitedFor) {
  free_ = 50;
  auto turn = ask(80);
  std::this_thread::sleep_for(150ms);
  free_ = 100;
  EXPECT_TRUE(turn.get().held);
}

TEST_F(MemoryTurnsTest, ALargeOneIsNotOvertaken) {
  auto first = take(40);
  auto large = ask(90);
  std::this_thread::sleep_for(300ms);
  auto small = ask(10);
  EXPECT_EQ(small.wait_for(150ms), std::future_status::timeout);
  first.held.reset();
  auto turn = large.get();
  EXPECT_TRUE(turn.held);
  EXPECT_TRUE(small.get().held);
}

TEST_F(MemoryTurnsTest, AFaultOrADeadlineLetsTheNextOneIn) {
  const auto failing = turns_->take(
      1, []() -> Result<int64_t> { return our_error("no measure"); }, Deadline::never());
  ASSERT_FALSE(failing.ok());
  EXPECT_EQ(failing.error().message, "no measure");
  const auto first = take(40);
  const auto late = turns_->take(
      90, [] { return Result<int64_t>(100); }, Deadline::after(0.05));
  ASSERT_FALSE(late.ok());
  EXPECT_TRUE(take(60).held);
}

TEST_F(MemoryTurnsTest, WhereNothingCanBeMeasuredAllGo) {
  free_ = 0;
  EXPECT_TRUE(take(int64_t{1} << 50).held);
}

TEST_F(MemoryTurnsTest, ManyNeverHoldMoreThanThereIs) {
  std::atomic<int64_t> held = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int64_t need = 10 + (7 * t + 13 * i) % 80;
        const auto turn = take(need);
        const int64_t now = held += need;
        for (int64_t old = most; old < now && !most.compare_exchange_weak(old, now);) {
        }
        std::this_thread::sleep_for(100us);
        held -= need;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most, 100);
  EXPECT_GT(most, 80);
}

}  // namespace
}  // namespace nereid::replay
