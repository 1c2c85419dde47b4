// Steps of several sessions take turns on the GPU; while one session is timed it has the GPU to itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace nereid::replay {

// Seconds of one session's passes: until it got them, and while it had them.
struct GpuUse {
  double waited = 0, held = 0;
};

// Steps go one after the other: contexts that want the GPU at once are given it in slices, and a step of many
// small kernels that shares it with three others took ten times as long as alone. A step that is inside for
// longer than a turn is joined by the next.
//
// A timing waits for the passes inside and holds back later ones, but not for the sake of one slow step:
// while a pass has been inside for 100 turns, others share as before, until the timing has waited for 1,500.
// Waiting timings run one after the other before passes are shared again: emptying the GPU costs as much as
// some timings do. No session starves: each shares between two timings.
class GpuGate {
  using Clock = std::chrono::steady_clock;

 public:
  explicit GpuGate(Clock::duration turn = std::chrono::milliseconds(20)) : turn_(turn) {}

  // The way out is its end.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)),
          alone_(other.alone_),
          use_(other.use_),
          entered_(other.entered_) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_), std::swap(alone_, other.alone_);
      std::swap(use_, other.use_), std::swap(entered_, other.entered_);
      return *this;
    }
    ~Pass() {
      if (gate_ == nullptr) return;
      if (use_ != nullptr) use_->held += std::chrono::duration<double>(Clock::now() - entered_).count();
      gate_->leave(alone_, entered_);
    }

   private:
    friend class GpuGate;
    Pass(GpuGate* gate, bool alone, GpuUse* use, Clock::time_point asked, Clock::time_point entered)
        : gate_(gate), alone_(alone), use_(use), entered_(entered) {
      if (use_ != nullptr) use_->waited += std::chrono::duration<double>(entered_ - asked).count();
    }
    GpuGate* gate_ = nullptr;
    bool alone_ = false;
    GpuUse* use_ = nullptr;
    Clock::time_point entered_;
  };

  // `use`, where there is one, outlives the pass.
  Pass share(GpuUse* use = nullptr) {
    const auto asked = Clock::now();
    std::unique_lock lock(mutex_);
    while (const auto until = closed_until(Clock::now())) changed_.wait_until(lock, *until);
    entered_ = Clock::now();
    inside_.insert(entered_);
    return {this, false, use, asked, entered_};
  }
  Pass alone(GpuUse* use = nullptr) {
    const auto asked = Clock::now();
    std::unique_lock lock(mutex_);
    const auto waiting = waiting_to_time_.insert(asked);
    changed_.wait(lock, [&] { return !timing_ && inside_.empty(); });
    waiting_to_time_.erase(waiting);
    timing_ = true;
    return {this, true, use, asked, Clock::now()};
  }

 private:
  static constexpr int kSlow = 100, kPatience = 1500;  // turns

  // When to look again, at the latest, where a pass cannot be shared now.
  std::optional<Clock::time_point> closed_until(Clock::time_point now) const {
    const auto woken = now + std::chrono::hours(1);
    if (timing_) return woken;
    if (!waiting_to_time_.empty()) {
      const auto slow = inside_.empty() ? woken : *inside_.begin() + kSlow * turn_;
      if (now < slow) return slow;
      if (now >= *waiting_to_time_.begin() + kPatience * turn_) return woken;
    }
    if (!inside_.empty() && now < entered_ + turn_) return entered_ + turn_;
    return std::nullopt;
  }
  void leave(bool alone, Clock::time_point entered) {
    {
      const std::lock_guard lock(mutex_);
      if (alone)
        timing_ = false;
      else
        inside_.erase(inside_.find(entered));
    }
    changed_.notify_all();
  }

  const Clock::duration turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point entered_;                                  // when the last shared pass was taken
  std::multiset<Clock::time_point> inside_, waiting_to_time_;  // since when
  bool timing_ = false;
};

// Of the one GPU that this process uses.
inline GpuGate& gpu_gate() {
  static GpuGate gate;
  return gate;
}

}  // namespace nereid::replay
