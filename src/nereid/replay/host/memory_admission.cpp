#include "nereid/replay/host/memory_admission.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "nereid/base/program/interrupt.h"

namespace nereid::replay {
namespace {

using namespace std::chrono_literals;

// What a process that was killed had comes back a little later than its end is seen.
constexpr auto kLate = 100ms;
constexpr int kLooks = 10;

}  // namespace

Result<MemoryAdmission::Grant> MemoryAdmission::take(int64_t need, const Measure& measure, Deadline deadline,
                                                     bool whole) {
  std::unique_lock lock(mutex_);
  const auto ticket = next_ticket_++;
  // The next ticket is served even where this one gives up.
  struct Served {
    MemoryAdmission& admission;
    std::unique_lock<std::mutex>& lock;
    ~Served() {
      if (!lock.owns_lock()) lock.lock();
      do ++admission.serving_;
      while (admission.given_up_.erase(admission.serving_) > 0);
      admission.changed_.notify_all();
    }
  };
  while (ticket != serving_ && !interrupted()) changed_.wait_for(lock, kLate);
  // Its number is passed over when it comes up.
  if (ticket != serving_) {
    given_up_.insert(ticket);
    return Error{"interrupted", Blame::kInterrupted};
  }
  const Served served{*this, lock};
  while (true) {
    if (holders_ == 0) {
      lock.unlock();  // no other session enters: it is this one's turn
      for (int look = 0; look < kLooks; ++look) {
        NEREID_TRY(const int64_t free, measure());
        capacity_ = free;
        if (free <= 0 || need <= free || deadline.passed()) break;
        std::this_thread::sleep_for(kLate);
      }
      lock.lock();
    }
    if (capacity_ > 0 && need > capacity_) return Grant{nullptr, capacity_};
    if (whole ? holders_ == 0 : capacity_ <= 0 || held_ + need <= capacity_) break;
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (deadline.passed()) return our_error("no memory came free within the deadline");
    changed_.wait_for(lock, kLate);
  }
  if (whole) need = std::max(need, capacity_);
  held_ += need, ++holders_;
  const auto give_back = [self = shared_from_this(), need](void*) {
    const std::lock_guard back(self->mutex_);
    self->held_ -= need, --self->holders_;
    self->changed_.notify_all();
  };
  return Grant{std::shared_ptr<void>(this, give_back), capacity_};
}

}  // namespace nereid::replay
