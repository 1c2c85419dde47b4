// Time: a monotonic stopwatch and a deadline.
#pragma once

#include <algorithm>
#include <chrono>

namespace nereid {

using Clock = std::chrono::steady_clock;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  Clock::time_point start_ = Clock::now();
};

class Deadline {
 public:
  static Deadline after(double seconds) { return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))); }
  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline earlier(Deadline a, Deadline b) { return a.when_ < b.when_ ? a : b; }
  Clock::time_point when() const { return when_; }
  bool passed() const { return when_ != Clock::time_point::max() && Clock::now() >= when_; }
  // Milliseconds left, at least 0; -1 (poll's "for ever") when there is no deadline.
  int poll_milliseconds() const {
    if (when_ == Clock::time_point::max()) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(when_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left + 1, 0, 1 << 30));
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace nereid
