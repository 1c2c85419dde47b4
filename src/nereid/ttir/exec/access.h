// Accesses to the launch's buffers: a tile of addresses under a mask, walked as rows of neighbouring bytes
// where it can be.
#pragma once

#include <cstdint>
#include <functional>

#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir {

// A tile of accesses. `pointers` and `mask` may be in any form; `mask` null: all lanes.
struct Access {
  Value* pointers = nullptr;
  Value* mask = nullptr;
  const int32_t* shape = nullptr;
  int rank = 0;
  int64_t lanes = 1;
  int bytes = 1;  // of an element
  LocationId location = -1;
  bool atomic = false;     // a volatile read: it synchronises instead of racing
  bool by_engine = false;  // a descriptor's block: the copy engine moves it, no lane that holds an element
};

// Reads into `out` (row-major); lanes off or out of bounds are left alone, or zero. Reports what is wrong.
enum class Unread : uint8_t { kLeft, kZero };
void read_tile(Machine& m, const Access& access, std::byte* out, Unread unread = Unread::kLeft);
// Where a tile of accesses is one piece of a buffer and in order, the place it starts at; noted as read. Null
// elsewhere.
std::byte* whole_tile(Machine& m, const Access& access);
// Writes from `from`; with `step` 0 all lanes write the one element there.
void write_tile(Machine& m, const Access& access, const std::byte* from, int step);

// Calls f(lane, address) for every lane that is on and in bounds; reports the first that is not.
template <class F>
void for_each_lane(Machine& m, const Access& access, F f);

// Calls f(address, bytes) for ranges that cover the lanes that are on, bounds unseen.
void for_each_range(Machine& m, const Access& access, const std::function<void(int64_t, int64_t)>& f);

// Whether [address, address + bytes) is in a buffer.
inline bool in_bounds(const Machine& m, int64_t address, int64_t bytes) {
  const int64_t buffer = buffer_of(address);
  if (buffer < 0 || buffer >= static_cast<int64_t>(m.context().buffers->size())) return false;
  const int64_t offset = offset_of(address);
  return offset >= 0 && offset + bytes <= (*m.context().buffers)[static_cast<size_t>(buffer)].bytes;
}

// Sanitizer's view of bytes [address, address + bytes) that are about to be read or have been written.
// `lanes`: of the tile, 1 for a scalar.
void note_read(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes);
void note_write(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes);
void note_atomic(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes);
// After an atomic that acquires, before what its program does next; or that releases.
void note_acquired(Machine& m, int64_t address);
void note_released(Machine& m, int64_t address);
// Whether lanes of one program may pass data to each other at an address's buffer; then their accesses are
// noted.
bool passes_data(const Machine& m, int64_t address);
// A barrier of the program's lanes; after a value was made of what lanes have read, for their reads alone.
void note_barrier(Machine& m);
void note_reads_used(Machine& m);
void note_lanes(Machine& m, LaneAccess kind, const LaneRow& row);
void report_if_misaligned(Machine& m, LocationId location, int64_t address, int64_t bytes);

template <class F>
void for_each_lane(Machine& m, const Access& access, F f) {
  const auto* addresses = reinterpret_cast<const int64_t*>(
      m.dense(*access.pointers, Elem::kPointer, access.shape, access.rank, access.lanes));
  const uint8_t* mask = nullptr;
  if (access.mask != nullptr) {
    if (access.mask->form == Form::kUniform && access.mask->base == 0) return;
    if (access.mask->form != Form::kUniform)
      mask = reinterpret_cast<const uint8_t*>(
          m.dense(*access.mask, Elem::kI1, access.shape, access.rank, access.lanes));
  }
  bool reported = false;
  for (int64_t k = 0; k < access.lanes; ++k) {
    if (mask != nullptr && mask[k] == 0) continue;
    if (!in_bounds(m, addresses[k], access.bytes)) [[unlikely]] {
      if (!reported) report_out_of_bounds(m, access.location, addresses[k]);
      reported = true;
      continue;
    }
    m.bytes += access.bytes;
    f(k, addresses[k]);
  }
}

}  // namespace nereid::ttir
