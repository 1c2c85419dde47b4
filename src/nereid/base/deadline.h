// Time: a monotonic stopwatch, and deadlines that know whose they are. docs/deadlines.md lists all of them.
#pragma once

#include <time.h>

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

// Seconds of processor time that all threads of this process have used.
inline double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Whose limit has run out where a deadline passes. It decides what that means: a verdict is given of a
// candidate's limit alone.
enum class LimitOwner {
  kOurs,       // how long we are ready to wait for a process of our own: an Error, or a retry
  kCandidate,  // TimedOut
  kCaller,     // the budget that the caller has for the answer: an Error by the rule "budget"
};

// By how much a loaded machine may extend a candidate's limit: wall time that its process spent waiting for
// a processor is not counted, up to this many times the limit.
inline constexpr double kMaxLimitExtension = 10;

class Deadline {
 public:
  static Deadline after(double seconds, LimitOwner owner = LimitOwner::kOurs) {
    return Deadline(when_after(seconds), owner);
  }
  static Deadline never() { return Deadline(Clock::time_point::max(), LimitOwner::kOurs); }
  // A candidate's limit on what this process computes for it from now on. It passes when `seconds` of wall
  // time are over and this process has used as much processor time, or after kMaxLimitExtension times as
  // long.
  static Deadline after_work(double seconds) {
    Deadline deadline(when_after(kMaxLimitExtension * seconds), LimitOwner::kCandidate);
    deadline.soonest_ = when_after(seconds);
    deadline.processor_end_ = processor_seconds() + kWorkShare * seconds;
    return deadline;
  }
  // The earlier one, with its owner.
  static Deadline earlier(Deadline a, Deadline b) { return a.when_ < b.when_ ? a : b; }
  // The same moment under another owner.
  Deadline owned_by(LimitOwner owner) const {
    Deadline other = *this;
    other.owner_ = owner;
    return other;
  }

  Clock::time_point when() const { return when_; }
  LimitOwner owner() const { return owner_; }
  bool passed() const {
    if (when_ == Clock::time_point::max()) return false;
    const auto now = Clock::now();
    if (now >= when_) return true;
    return now >= soonest_ && processor_seconds() >= processor_end_;
  }
  // Milliseconds left, at least 0; -1 (poll's "for ever") when there is no deadline.
  int poll_milliseconds() const {
    if (when_ == Clock::time_point::max()) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(when_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left + 1, 0, 1 << 30));
  }

 private:
  // A process that computes all the time has a little less than the wall time on an idle machine, too.
  static constexpr double kWorkShare = 0.9;

  Deadline(Clock::time_point when, LimitOwner owner) : when_(when), owner_(owner) {}
  static Clock::time_point when_after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Clock::time_point when_;
  Clock::time_point soonest_ = Clock::time_point::max();  // of after_work alone
  double processor_end_ = 0;
  LimitOwner owner_;
};

}  // namespace nereid
