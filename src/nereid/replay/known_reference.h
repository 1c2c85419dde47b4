// What timing found of a task's reference on this GPU, by input distribution, for all whose candidates are
// timed on the same inputs. The first that was found counts: so all of them are measured by one number.
// Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "nereid/replay/report.h"

namespace nereid::replay {

class KnownReference {
 public:
  // The median of a run as a graph.
  std::optional<double> ms(InputDistribution kind) const { return find(ms_, kind); }
  void keep_ms(InputDistribution kind, double ms) { keep(ms_, kind, ms); }
  // Of the inputs, as far as they surely must be read.
  std::optional<double> bytes_read(InputDistribution kind) const { return find(bytes_read_, kind); }
  void keep_bytes_read(InputDistribution kind, double bytes) { keep(bytes_read_, kind, bytes); }
  // A time of this kind was measured that cannot be: nothing is known of it.
  void forget(InputDistribution kind) {
    const std::lock_guard lock(mutex_);
    ms_.erase(kind);
  }

 private:
  using Numbers = std::map<InputDistribution, double>;
  std::optional<double> find(const Numbers& numbers, InputDistribution kind) const {
    const std::lock_guard lock(mutex_);
    const auto found = numbers.find(kind);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(Numbers& numbers, InputDistribution kind, double number) {
    const std::lock_guard lock(mutex_);
    numbers.emplace(kind, number);
  }

  mutable std::mutex mutex_;
  Numbers ms_, bytes_read_;
};

}  // namespace nereid::replay
