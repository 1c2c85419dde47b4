// Sessions share a device's memory: each says what it will hold at most before it makes anything, and waits
// where others have that much of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"

namespace nereid::replay {

// Thread-safe. In the order of asking: a large session is not overtaken by small ones for ever.
class MemoryAdmission : public std::enable_shared_from_this<MemoryAdmission> {
 public:
  struct Grant {
    std::shared_ptr<void> held;  // null: it would not fit even alone. Free for others when this is gone
    int64_t capacity = 0;        // what there is for all
  };
  // Bytes that are free now; called while no session holds any. 0 or less: unknown, and all is let in.
  using Measure = std::function<Result<int64_t>()>;

  // `whole`: all of it, once no other session holds any.
  Result<Grant> take(int64_t need, const Measure& measure, Deadline deadline, bool whole = false);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ticket_ = 0, serving_ = 0;
  std::set<uint64_t> given_up_;  // tickets of those that no longer wait
  int64_t held_ = 0, capacity_ = 0;
  int holders_ = 0;
};

}  // namespace nereid::replay
