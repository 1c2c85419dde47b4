#include "nereid/ttir/exec/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir {
namespace {

constexpr size_t kInterleaved = 12;     // programs that take turns
constexpr size_t kFirstCrowd = 256;     // waiting programs, before they are taken up again
constexpr int64_t kQuietRounds = 1000;  // in which nothing changes in memory: a deadlock

}  // namespace

ProgramOrder::ProgramOrder(int64_t programs, bool shuffled) : programs_(programs) {
  if (!shuffled || programs < 2) return;
  step_ = programs - 1;  // backwards
  first_ = programs - 1;
  if (programs < 8) return;
  step_ = static_cast<int64_t>(static_cast<double>(programs) * 0.6180339887498949);
  while (std::gcd(step_, programs) != 1) ++step_;
  first_ = programs / 3 + 1;
  const auto last = [&] { return (*this)[programs - 1]; };
  while (last() == programs - 1 || last() == 0) ++first_;
}

int64_t ProgramOrder::operator[](int64_t k) const {
  if (step_ == 1 && first_ == 0) return k;
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(k) * static_cast<uint64_t>(step_) + static_cast<uint64_t>(first_)) %
      static_cast<uint64_t>(programs_));
}

Schedule::Schedule(const LaunchContext& context, int64_t programs, bool shuffled, bool interleaved,
                   int64_t resident, Hooks hooks)
    : context_(context),
      programs_(programs),
      resident_(resident > 0 ? resident : programs),
      interleaved_(interleaved),
      order_(programs, shuffled),
      hooks_(std::move(hooks)),
      crowd_(kFirstCrowd) {}

void Schedule::begin() {
  std::unique_ptr<Machine> machine;
  if (idle_.empty()) {
    machine = hooks_.make();
  } else {
    machine = std::move(idle_.back());
    idle_.pop_back();
  }
  const int64_t linear = order_[begun_++];
  const auto& grid = context_.launch->grid;
  machine->switches = interleaved_;
  machine->start(linear, {linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]});
  running_.push_back({std::move(machine), false});
  ++active_;
}

bool Schedule::resume(size_t which) {
  Running& r = running_[which];
  const int64_t before = r.machine->stores;
  const bool waited = r.waits;
  const auto state = r.machine->resume(0);
  if (state == Machine::State::kTimedOut) return false;
  const bool finished = state == Machine::State::kFinished;
  const bool stalls = state == Machine::State::kYielded && r.machine->stalls > 0;
  r.waits = stalls || (state == Machine::State::kYielded && r.machine->waits);
  if (finished || stalls || !r.waits || r.machine->stores != before)
    quiet_ = 0;
  else
    ++quiet_;
  active_ += static_cast<size_t>(!r.waits && !finished) - static_cast<size_t>(!waited);
  if (!finished) return true;
  hooks_.finished(*r.machine);
  r.machine->reset();
  idle_.push_back(std::move(r.machine));
  running_.erase(running_.begin() + static_cast<int64_t>(which));
  return true;
}

// Programs that could not begin are waited for, or, where all have begun, nothing.
bool Schedule::report_deadlock() {
  if (begun_ == programs_) return false;
  Machine& m = *running_.front().machine;
  report(m, FindingKind::kDeadlock, m.poll_location, -1, 0,
         fmt::format("{} of {} programs wait at once, which is as many as are surely resident together on an "
                     "H200; the other {} cannot begin",
                     running_.size(), programs_, programs_ - begun_));
  return true;
}

bool Schedule::run() {
  size_t next = 0;
  int64_t steps = 0;
  while (begun_ < programs_ || !running_.empty()) {
    if ((++steps & 63) == 0 && context_.deadline.passed()) return false;
    const bool room = begun_ < programs_ && static_cast<int64_t>(running_.size()) < resident_;
    const size_t most_active = interleaved_ ? kInterleaved : 1;
    if (room && active_ < most_active && running_.size() - active_ < crowd_) {
      begin();
      if (!interleaved_ && !resume(running_.size() - 1)) return false;
      continue;
    }
    if (next >= running_.size()) {
      next = 0;
      // Most that wait do so for programs that have not begun.
      if (room && active_ == 0) crowd_ = 2 * running_.size();
    }
    const size_t before = running_.size();
    if (!resume(next)) return false;
    if (running_.size() == before) ++next;
    const auto all = static_cast<int64_t>(running_.size());
    const bool full = begun_ == programs_ || all >= resident_;
    if (full && all > 0 && quiet_ > kQuietRounds * all) return report_deadlock();
  }
  return true;
}

}  // namespace nereid::ttir
