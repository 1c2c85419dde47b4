// Trials of several sessions share the GPU; while one session is timed it has the GPU to itself.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace nereid::replay {

class GpuGate {
 public:
  // Held while the GPU is used, or timed. Who wants to time waits for those inside and holds back those who
  // come after.
  std::shared_lock<std::shared_mutex> share() {
    const std::lock_guard turn(turnstile_);
    return std::shared_lock(inside_);
  }
  std::unique_lock<std::shared_mutex> alone() {
    const std::lock_guard turn(turnstile_);
    return std::unique_lock(inside_);
  }

 private:
  std::mutex turnstile_;
  std::shared_mutex inside_;
};

}  // namespace nereid::replay
