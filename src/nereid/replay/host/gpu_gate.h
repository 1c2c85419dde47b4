// Steps of several sessions take turns on the GPU; while one session is timed it has the GPU to itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
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
// A timing waits for the passes inside and holds back later ones. Waiting timings run one after the other
// before passes are shared again: emptying the GPU costs as much as some timings do. No session starves:
// each shares between two timings.
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
      gate_->leave(alone_);
    }

   private:
    friend class GpuGate;
    Pass(GpuGate* gate, bool alone, GpuUse* use, Clock::time_point asked)
        : gate_(gate), alone_(alone), use_(use), entered_(Clock::now()) {
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
    while (true) {
      if (timing_ || waiting_to_time_ > 0)
        changed_.wait(lock);
      else if (sharing_ > 0 && Clock::now() < entered_ + turn_)
        changed_.wait_until(lock, entered_ + turn_);
      else
        break;
    }
    ++sharing_;
    entered_ = Clock::now();
    return {this, false, use, asked};
  }
  Pass alone(GpuUse* use = nullptr) {
    const auto asked = Clock::now();
    std::unique_lock lock(mutex_);
    ++waiting_to_time_;
    changed_.wait(lock, [&] { return !timing_ && sharing_ == 0; });
    --waiting_to_time_;
    timing_ = true;
    return {this, true, use, asked};
  }

 private:
  void leave(bool alone) {
    {
      const std::lock_guard lock(mutex_);
      if (alone)
        timing_ = false;
      else
        --sharing_;
    }
    changed_.notify_all();
  }

  const Clock::duration turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point entered_;  // when the last shared pass was taken
  int sharing_ = 0, waiting_to_time_ = 0;
  bool timing_ = false;
};

// Of the one GPU that this process uses.
inline GpuGate& gpu_gate() {
  static GpuGate gate;
  return gate;
}

}  // namespace nereid::replay
