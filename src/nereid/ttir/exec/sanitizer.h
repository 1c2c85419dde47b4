// What a run found: collected a thread at a time, sorted in the end so that the number of threads does not
// show.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/exec/machine.h"

namespace nereid::ttir {

// One finding before it is put into words. Sorted by program, then place.
struct RawFinding {
  int64_t linear = 0;
  FindingKind kind{};
  LocationId location = -1;
  int64_t buffer = -1, offset = 0;  // bytes
  std::array<int64_t, 3> program{};
  std::string detail;
};

// A read of bytes that were unwritten when it happened. Whether that is a finding is known in the end:
// where another program of the launch wrote them, it is a race or was ordered.
struct UninitializedRead {
  RawFinding finding;
  int64_t low = 0, high = 0;  // addresses
};

class Sanitizer {
 public:
  // Thread-safe. Keeps, for each kind, place and buffer, the first by program; counts them all.
  void add(RawFinding finding);
  void add(UninitializedRead read);
  // After all programs: settles the reads of unwritten bytes and adds the races.
  void conclude(const LaunchContext& context, RaceLog* races);
  void add(const LaunchContext& context, const Race& race);
  int64_t count() const { return count_; }
  std::vector<Finding> take(const LaunchContext& context, int max_findings) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<FindingKind, LocationId, int64_t>, RawFinding> first_;
  int64_t count_ = 0;
  std::vector<UninitializedRead> reads_;
};

// Reports from inside a handler; `detail` is the assertion's message.
void report(Machine& m, FindingKind kind, LocationId location, int64_t buffer = -1, int64_t offset = 0,
            std::string detail = "");
// Bytes [first, last) of a buffer are read, the first of them is unwritten.
void report_uninitialized(Machine& m, LocationId location, int64_t buffer, int64_t first, int64_t last);
// An access whose address is in no buffer, or outside its buffer.
void report_out_of_bounds(Machine& m, LocationId location, int64_t address);

// Bitmaps of written bytes: one bit a byte.
bool all_written(const uint8_t* bitmap, int64_t first, int64_t last);
int64_t first_unwritten(const uint8_t* bitmap, int64_t first, int64_t last);  // `last` when there is none
void mark_written(uint8_t* bitmap, int64_t first, int64_t last);

}  // namespace nereid::ttir
