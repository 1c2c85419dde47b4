#include "nereid/replay/host/memory_admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace nereid::replay {
namespace {

using namespace std::chrono_literals;

class MemoryAdmissionTest : public testing::Test {
 protected:
  MemoryAdmission::Grant take(int64_t need, double seconds = 30) {
    auto grant = admission_->take(
        need, [this]() -> Result<int64_t> { return free_.load(); }, Deadline::after(seconds));
    EXPECT_TRUE(grant.ok()) << grant.error().message;
    return grant.ok() ? *grant : MemoryAdmission::Grant{};
  }
  std::future<MemoryAdmission::Grant> ask(int64_t need) {
    return std::async(std::launch::async, [this, need] { return take(need); });
  }
  std::shared_ptr<MemoryAdmission> admission_ = std::make_shared<MemoryAdmission>();
  std::atomic<int64_t> free_ = 100;
};

TEST_F(MemoryAdmissionTest, ASessionThatFitsIsAdmittedAtOnce) {
  const auto first = take(40), second = take(60);
  EXPECT_TRUE(first.held && second.held);
  EXPECT_EQ(second.capacity, 100);
}

TEST_F(MemoryAdmissionTest, ASessionThatDoesNotFitWaitsForOthers) {
  auto first = take(40);
  free_ = 60;  // it made what it said
  auto second = ask(70);
  EXPECT_EQ(second.wait_for(250ms), std::future_status::timeout);
  free_ = 100;
  first.held.reset();
  EXPECT_TRUE(second.get().held);
}

TEST_F(MemoryAdmissionTest, ASessionThatDoesNotFitAloneLearnsTheCapacity) {
  const auto grant = take(101);
  EXPECT_FALSE(grant.held);
  EXPECT_EQ(grant.capacity, 100);
  const auto other = take(10);
  EXPECT_FALSE(take(101).held) << "and does not wait for others to end";
  EXPECT_TRUE(take(90).held);
}

TEST_F(MemoryAdmissionTest, WhoTakesAllWaitsForAllAndKeepsOthersOut) {
  auto first = take(40);
  auto whole = std::async(std::launch::async, [this] {
    auto grant =
        admission_->take(10, [this]() -> Result<int64_t> { return free_.load(); }, Deadline::after(30), true);
    EXPECT_TRUE(grant.ok());
    return grant.ok() ? *grant : MemoryAdmission::Grant{};
  });
  EXPECT_EQ(whole.wait_for(250ms), std::future_status::timeout);
  first.held.reset();
  auto held = whole.get();
  EXPECT_TRUE(held.held);
  auto small = ask(1);
  EXPECT_EQ(small.wait_for(250ms), std::future_status::timeout);
  held.held.reset();
  EXPECT_TRUE(small.get().held);
}

TEST_F(MemoryAdmissionTest, WhatComesBackLateIsWaitedFor) {
  free_ = 50;
  auto grant = ask(80);
  std::this_thread::sleep_for(150ms);
  free_ = 100;
  EXPECT_TRUE(grant.get().held);
}

TEST_F(MemoryAdmissionTest, ALargeOneIsNotOvertaken) {
  auto first = take(40);
  auto large = ask(90);
  std::this_thread::sleep_for(300ms);
  auto small = ask(10);
  EXPECT_EQ(small.wait_for(150ms), std::future_status::timeout);
  first.held.reset();
  auto grant = large.get();
  EXPECT_TRUE(grant.held);
  EXPECT_TRUE(small.get().held);
}

TEST_F(MemoryAdmissionTest, AFaultOrADeadlineLetsTheNextOneIn) {
  const auto failing =
      admission_->take(1, []() -> Result<int64_t> { return our_error("no measure"); }, Deadline::never());
  ASSERT_FALSE(failing.ok());
  EXPECT_EQ(failing.error().message, "no measure");
  const auto first = take(40);
  const auto late = admission_->take(90, [] { return Result<int64_t>(100); }, Deadline::after(0.05));
  ASSERT_FALSE(late.ok());
  EXPECT_TRUE(take(60).held);
}

TEST_F(MemoryAdmissionTest, WhereNothingCanBeMeasuredAllGo) {
  free_ = 0;
  EXPECT_TRUE(take(int64_t{1} << 50).held);
}

TEST_F(MemoryAdmissionTest, ManyNeverHoldMoreThanThereIs) {
  std::atomic<int64_t> held = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int64_t need = 10 + (7 * t + 13 * i) % 80;
        const auto grant = take(need);
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
