// Races between the programs of a launch: what each program touched, compared when all are done.
//
// A program's accesses are byte ranges, merged as they come; only buffers where a conflict is possible are
// watched. In the end all ranges are sorted by address and swept once. Two accesses conflict when different
// programs touch the same bytes, one of them writes, and they are not both atomic. Where atomics may order
// programs, happens_before.h looks instead.
//
// Memory is bounded: past a limit only the 4 KiB pages that a hash picks are kept, fewer and fewer, so that
// what is reported stays exact and does not depend on threads, but a race elsewhere may go unseen.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };

struct Span {
  int64_t low = 0, high = 0;  // addresses, `high` excluded
  int32_t program = 0;
  LocationId location = -1;
  AccessKind kind{};
};

// What one program touched, in the order it did.
class ProgramLog {
 public:
  void add(AccessKind kind, int64_t address, int64_t bytes, int32_t program, LocationId location) {
    if (!spans_.empty()) {
      Span& last = spans_.back();
      if (last.high == address && last.kind == kind && last.location == location) {
        last.high += bytes;
        return;
      }
    }
    spans_.push_back({address, address + bytes, program, location, kind});
    if (spans_.size() >= compact_at_) compact();
  }
  void compact();  // merges overlapping and neighbouring spans of one kind
  std::vector<Span>& spans() { return spans_; }
  void clear() {
    spans_.clear();
    compact_at_ = size_t{1} << 14;
  }

 private:
  std::vector<Span> spans_;
  size_t compact_at_ = size_t{1} << 14;
};

struct Race {
  Span span, other;  // of the later program, and of the earlier
  // The earlier program released after its access, but no barrier of its lanes stood between.
  bool not_covered = false;
};

class RaceLog {
 public:
  explicit RaceLog(int threads) : threads_(static_cast<size_t>(threads)) {}
  // Takes over a finished program's spans. `thread` as in ThreadPool::parallel_for.
  void add(ProgramLog& log, int thread);
  // All spans that conflict with some other, each once; call when all programs are done.
  std::vector<Race> find();
  // After find(): whether another program wrote (or atomically changed) bytes of [low, high).
  bool written_by_another(int64_t low, int64_t high, int32_t program) const;
  bool sampled() const { return level_ > 0; }

  // Whether a page of 4 KiB is among those that are looked at when one in 2^level is.
  static bool page_kept(int64_t page, int level);

  static constexpr int64_t kMaxSpans = 12'000'000;  // 40 bytes each

 private:
  void keep_pages(std::vector<Span>& spans, int level) const;
  std::vector<std::vector<Span>> threads_;
  std::vector<Span> all_;
  std::atomic<int64_t> total_{0};
  std::atomic<int> level_{0};
  int64_t longest_ = 0;
};

}  // namespace nereid::ttir
