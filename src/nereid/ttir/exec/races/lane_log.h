// What passes between the lanes of one program through memory: a tile of elements is spread over threads, and
// a thread sees what another wrote only once a barrier stands between.
//
// Which thread holds an element is decided by layouts that TTIR does not have. What is certain is that the
// same element of tiles of one size, at the same addresses, is held by the same thread, as is a scalar;
// anything else counts as another lane. Barriers are what Triton's lowering certainly makes one of:
// tl.debug_barrier, a scalar atomic whose result is used (it is handed round in shared memory), and a
// reduction or scan of all of a tile of more than 32 elements to a scalar or along its one dimension. A dot
// is none: loads are moved over its barriers.
//
// Looked at where a kernel both loads and stores in one buffer. Past kMaxPieces pieces between two barriers
// nothing more is noted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Elements at neighbouring addresses that neighbouring lanes of a tile access.
struct LaneRow {
  int64_t address = 0, bytes = 0;  // of the first element; all bytes of the row
  int64_t lane = 0, lanes = 0;  // of the first element; of the whole tile, negative for a descriptor's block
  int32_t element = 1;          // its bytes
  LocationId location = -1;
};

enum class LaneAccess : uint8_t { kRead, kWrite, kAtomic };

class LaneLog {
 public:
  struct Conflict {
    int64_t address = 0;
    LocationId other = -1;  // where the earlier access stands
    bool other_writes = false;
  };
  // Notes an access. An earlier one of the same program, by another lane, that it is not ordered with: one of
  // them writes, and not both are atomic.
  std::optional<Conflict> access(LaneAccess kind, const LaneRow& row);
  void next() { ++number_; }  // another tile's accesses begin; those of one tile have no order
  void barrier() {
    if (!pieces_.empty()) pieces_.clear();
  }

 private:
  static constexpr size_t kMaxPieces = size_t{1} << 18;

  struct Holder {  // the lane at the piece's first byte
    int64_t lane = -1, lanes = 0;
    int32_t element = 0;
    LocationId location = -1;
    int64_t number = 0;  // of its tile
    bool atomic = false;
    bool several = false;  // of atomics and reads: of several lanes
    bool none() const { return lane < 0; }
    bool same(const Holder& o) const {
      return !several && lane == o.lane && lanes == o.lanes && element == o.element;
    }
  };
  struct Piece {
    int64_t high = 0;
    Holder written, read;
  };
  void cut(int64_t address);  // so that no piece goes across it

  std::map<int64_t, Piece> pieces_;  // by their first byte
  int64_t number_ = 0;
};

}  // namespace nereid::ttir
