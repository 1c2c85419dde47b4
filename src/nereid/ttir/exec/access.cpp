#include "nereid/ttir/exec/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "nereid/ttir/exec/affine.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir {
namespace {

// An affine tile of addresses cut down to the lanes that are on, its dimensions merged where they continue
// each other.
struct Rows {
  int64_t address = 0, lane = 0;  // of the first lane that is on
  int rank = 0;
  int64_t size[kLazyRank] = {}, stride[kLazyRank] = {}, lane_stride[kLazyRank] = {};
  int64_t low = 0, high = 0;  // the least and the greatest address
  bool none = false;

  int64_t lanes() const {
    int64_t all = 1;
    for (int d = 0; d < rank; ++d) all *= size[d];
    return all;
  }
};

Rows rows_of(const Access& a) {
  Rows r;
  const Value& p = *a.pointers;
  const bool box = a.mask != nullptr && a.mask->form == Form::kBox;
  r.address = p.base;
  int64_t lane_stride[kLazyRank];
  int64_t step = 1;
  for (int d = a.rank - 1; d >= 0; --d) {
    lane_stride[d] = step;
    step *= a.shape[d];
  }
  for (int d = 0; d < a.rank; ++d) {
    const int64_t low = box ? a.mask->low[d] : 0, high = box ? a.mask->high[d] : a.shape[d];
    if (high <= low) r.none = true;
    const int64_t stride = p.form == Form::kAffine ? p.stride[d] : 0;
    r.address += low * stride;
    r.lane += low * lane_stride[d];
    const int64_t size = high - low;
    if (size == 1) continue;
    // A dimension that goes on where this one's rows end is the same dimension.
    if (r.rank > 0 && r.stride[r.rank - 1] == stride * size &&
        r.lane_stride[r.rank - 1] == lane_stride[d] * size) {
      r.size[r.rank - 1] *= size;
      r.stride[r.rank - 1] = stride;
      r.lane_stride[r.rank - 1] = lane_stride[d];
      continue;
    }
    r.size[r.rank] = size;
    r.stride[r.rank] = stride;
    r.lane_stride[r.rank] = lane_stride[d];
    ++r.rank;
  }
  r.low = r.high = r.address;
  for (int d = 0; d < r.rank; ++d) (r.stride[d] < 0 ? r.low : r.high) += r.stride[d] * (r.size[d] - 1);
  return r;
}

// Calls f(address, lane) at the start of every innermost row.
template <class F>
void walk(const Rows& r, F f) {
  if (r.rank <= 1) return f(r.address, r.lane);
  int64_t index[kLazyRank] = {};
  int64_t address = r.address, lane = r.lane;
  while (true) {
    f(address, lane);
    int d = r.rank - 2;
    for (; d >= 0; --d) {
      address += r.stride[d];
      lane += r.lane_stride[d];
      if (++index[d] < r.size[d]) break;
      address -= r.stride[d] * r.size[d];
      lane -= r.lane_stride[d] * r.size[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
void read_strided(const std::byte* from, int64_t stride, std::byte* out, int64_t lane_stride, int64_t n) {
  T* o = reinterpret_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) std::memcpy(o + k * lane_stride, from + k * stride, sizeof(T));
}
template <class T>
void write_strided(std::byte* to, int64_t stride, const std::byte* from, int64_t lane_stride, int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t k = 0; k < n; ++k) std::memcpy(to + k * stride, x + k * lane_stride, sizeof(T));
}

void read_row(int bytes, const std::byte* from, int64_t stride, std::byte* out, int64_t lane_stride,
              int64_t n) {
  if (stride == bytes && lane_stride == 1) {
    std::memcpy(out, from, static_cast<size_t>(n * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return read_strided<uint8_t>(from, stride, out, lane_stride, n);
    case 2:
      return read_strided<uint16_t>(from, stride, out, lane_stride, n);
    case 4:
      return read_strided<uint32_t>(from, stride, out, lane_stride, n);
    default:
      return read_strided<uint64_t>(from, stride, out, lane_stride, n);
  }
}

void write_row(int bytes, std::byte* to, int64_t stride, const std::byte* from, int64_t lane_stride,
               int64_t n) {
  if (stride == bytes && lane_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return write_strided<uint8_t>(to, stride, from, lane_stride, n);
    case 2:
      return write_strided<uint16_t>(to, stride, from, lane_stride, n);
    case 4:
      return write_strided<uint32_t>(to, stride, from, lane_stride, n);
    default:
      return write_strided<uint64_t>(to, stride, from, lane_stride, n);
  }
}

bool by_rows(const Access& a) {
  return a.rank <= kLazyRank && (a.pointers->form == Form::kUniform || a.pointers->form == Form::kAffine) &&
         (a.mask == nullptr || a.mask->form == Form::kUniform || a.mask->form == Form::kBox);
}

bool all_in_one_buffer(const Machine& m, const Rows& r, int bytes) {
  return buffer_of(r.low) == buffer_of(r.high) && in_bounds(m, r.low, bytes) && in_bounds(m, r.high, bytes);
}

template <class F>
void note_rows(const Rows& r, int bytes, F note) {
  const int64_t n = r.rank == 0 ? 1 : r.size[r.rank - 1], stride = r.rank == 0 ? bytes : r.stride[r.rank - 1];
  walk(r, [&](int64_t address, int64_t) {
    if (stride == bytes || n == 1) return note(address, n * bytes);
    for (int64_t k = 0; k < n; ++k) note(address + k * stride, static_cast<int64_t>(bytes));
  });
}

}  // namespace

void for_each_range(Machine& m, const Access& a, const std::function<void(int64_t, int64_t)>& f) {
  if (a.mask != nullptr && a.mask->form == Form::kUniform && a.mask->base == 0) return;
  if (by_rows(a)) {
    const Rows r = rows_of(a);
    if (!r.none) note_rows(r, a.bytes, f);
    return;
  }
  const auto* addresses =
      reinterpret_cast<const int64_t*>(m.dense(*a.pointers, Elem::kPointer, a.shape, a.rank, a.lanes));
  const uint8_t* mask = nullptr;
  if (a.mask != nullptr && a.mask->form != Form::kUniform)
    mask = reinterpret_cast<const uint8_t*>(m.dense(*a.mask, Elem::kI1, a.shape, a.rank, a.lanes));
  for (int64_t k = 0; k < a.lanes; ++k)
    if (mask == nullptr || mask[k] != 0) f(addresses[k], a.bytes);
}

void report_if_misaligned(Machine& m, LocationId location, int64_t address, int64_t bytes) {
  if (offset_of(address) % bytes != 0)
    report(m, FindingKind::kMisaligned, location, buffer_of(address), offset_of(address));
}

namespace {

void log_access(Machine& m, AccessKind kind, LocationId location, int64_t address, int64_t bytes,
                int64_t lanes) {
  const auto& watched = m.context().watched;
  if (watched.empty() || !watched[static_cast<size_t>(buffer_of(address))]) return;
  const auto program = static_cast<int32_t>(m.linear);
  if (m.context().history == nullptr) return m.log.add(kind, address, bytes, program, location);
  const auto by = lanes == 1 ? HappensBefore::By::kFirstLane : HappensBefore::By::kTile;
  const auto race = m.context().history->access(kind, address, address + bytes, program, location, by);
  if (race) m.context().sanitizer->add(m.context(), *race);
}

void expect_written(Machine& m, LocationId location, int64_t address, int64_t bytes) {
  const int64_t buffer = buffer_of(address), offset = offset_of(address);
  const uint8_t* written = m.buffer(buffer).written;
  if (written == nullptr) return;
  const int64_t hole = first_unwritten(written, offset, offset + bytes);
  if (hole < offset + bytes) report_uninitialized(m, location, buffer, hole, offset + bytes);
}

}  // namespace

void note_read(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes) {
  expect_written(m, location, address, bytes);
  log_access(m, AccessKind::kRead, location, address, bytes, lanes);
}

void note_write(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes) {
  const int64_t offset = offset_of(address);
  uint8_t* written = m.buffer(buffer_of(address)).written;
  if (written != nullptr) mark_written(written, offset, offset + bytes);
  log_access(m, AccessKind::kWrite, location, address, bytes, lanes);
}

void note_atomic(Machine& m, LocationId location, int64_t address, int64_t bytes, int64_t lanes) {
  if (!m.context().sanitize) return;
  expect_written(m, location, address, bytes);
  log_access(m, AccessKind::kAtomic, location, address, bytes, lanes);
}

void note_acquired(Machine& m, int64_t address) {
  if (m.context().history != nullptr) m.context().history->acquire(static_cast<int32_t>(m.linear), address);
}

void note_released(Machine& m, int64_t address) {
  if (m.context().history != nullptr) m.context().history->release(static_cast<int32_t>(m.linear), address);
}

void note_lanes(Machine& m, LaneAccess kind, const LaneRow& row) {
  const auto conflict = m.lane_log.access(kind, row);
  if (!conflict) return;
  const SourceLine unknown;
  const auto& lines = *m.context().lines;
  const SourceLine& line = conflict->other < 0 ? unknown : lines[static_cast<size_t>(conflict->other)];
  report(m, FindingKind::kMissingBarrier, row.location, buffer_of(conflict->address),
         offset_of(conflict->address),
         fmt::format("which another lane of the program {} at line {}, without tl.debug_barrier() between",
                     conflict->other_writes ? "writes" : "reads", line.line));
}

void note_barrier(Machine& m) {
  m.lane_log.barrier();
  if (m.context().history != nullptr)
    m.context().history->barrier(static_cast<int32_t>(m.linear), HappensBefore::Barrier::kFull);
}

void note_reads_used(Machine& m) {
  if (m.context().history != nullptr)
    m.context().history->barrier(static_cast<int32_t>(m.linear), HappensBefore::Barrier::kOfReads);
}

namespace {

// A descriptor's block is moved by no lane.
int64_t lanes_of(const Access& a) { return a.by_engine ? std::max<int64_t>(a.lanes, 2) : a.lanes; }

// A volatile read waits for another program's write: it counts as atomic.
void note(Machine& m, const Access& a, int64_t address, int64_t bytes) {
  const int64_t lanes = lanes_of(a);
  if (a.atomic) {
    note_atomic(m, a.location, address, bytes, lanes);
    m.polled = true;
    m.poll_location = a.location;
    return note_acquired(m, address);
  }
  note_read(m, a.location, address, bytes, lanes);
}

// The elements of a row, as the lane log has them.
void note_lane_row(Machine& m, const Access& a, LaneAccess kind, int64_t address, int64_t n, int64_t stride,
                   int64_t lane, int64_t lane_stride) {
  LaneRow row{address, n * a.bytes, lane, a.by_engine ? -a.lanes : a.lanes, a.bytes, a.location};
  if ((stride == a.bytes && lane_stride == 1) || n == 1) return note_lanes(m, kind, row);
  row.bytes = a.bytes;
  for (int64_t k = 0; k < n; ++k) {
    row.address = address + k * stride;
    row.lane = lane + k * lane_stride;
    note_lanes(m, kind, row);
  }
}
void note_lane_rows(Machine& m, const Access& a, const Rows& r, LaneAccess kind) {
  m.lane_log.next();
  const int last = r.rank - 1;
  walk(r, [&](int64_t address, int64_t lane) {
    if (r.rank == 0) return note_lane_row(m, a, kind, address, 1, a.bytes, lane, 1);
    note_lane_row(m, a, kind, address, r.size[last], r.stride[last], lane, r.lane_stride[last]);
  });
}

// Whether elements of different lanes may be at one address.
bool may_coincide(const Rows& r, int bytes) {
  std::array<std::pair<int64_t, int64_t>, kLazyRank> dims{};  // stride, size; a size of 0: there is none
  for (int d = 0; d < r.rank; ++d) dims[static_cast<size_t>(d)] = {std::abs(r.stride[d]), r.size[d]};
  std::ranges::sort(dims);
  int64_t reach = bytes;
  for (const auto& [stride, size] : dims) {
    if (size == 0) continue;
    if (stride < reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// One element of a store: where it goes, and its lane.
struct Stored {
  int64_t address = 0, lane = 0;
};

// Two lanes of one store that write different numbers to one address: nothing decides which of them remains.
void report_rivals(Machine& m, const Access& a, std::vector<Stored>& elements, const std::byte* from) {
  const auto data = [&](const Stored& s) { return from + s.lane * a.bytes; };
  const auto before = [](const Stored& x, const Stored& y) { return x.address < y.address; };
  if (!std::is_sorted(elements.begin(), elements.end(), before))
    std::stable_sort(elements.begin(), elements.end(), before);
  for (size_t k = 1; k < elements.size(); ++k) {
    const Stored &x = elements[k - 1], &y = elements[k];
    if (x.address != y.address || std::memcmp(data(x), data(y), static_cast<size_t>(a.bytes)) == 0) continue;
    return report(m, FindingKind::kOrderDependent, a.location, buffer_of(x.address), offset_of(x.address),
                  "by two lanes of one store with different numbers");
  }
}
void report_rivals(Machine& m, const Access& a, const Rows& r, const std::byte* from) {
  if (!may_coincide(r, a.bytes)) return;
  std::vector<Stored> elements;
  const int64_t n = r.rank == 0 ? 1 : r.size[r.rank - 1];
  walk(r, [&](int64_t address, int64_t lane) {
    for (int64_t k = 0; k < n; ++k)
      elements.push_back({address + (n == 1 ? 0 : k * r.stride[r.rank - 1]),
                          lane + (n == 1 ? 0 : k * r.lane_stride[r.rank - 1])});
  });
  report_rivals(m, a, elements, from);
}

}  // namespace

bool passes_data(const Machine& m, int64_t address) {
  const auto& passed = m.context().passed;
  const auto buffer = static_cast<size_t>(buffer_of(address));
  return buffer < passed.size() && passed[buffer];
}

void read_tile(Machine& m, const Access& a, std::byte* out, Unread unread) {
  const auto clear = [&] {
    if (unread == Unread::kZero) std::memset(out, 0, static_cast<size_t>(a.lanes * a.bytes));
  };
  if (a.mask != nullptr && a.mask->form == Form::kUniform && a.mask->base == 0) return clear();
  const bool sanitize = m.context().sanitize;
  if (by_rows(a)) {
    const Rows r = rows_of(a);
    if (r.none) return clear();
    if (all_in_one_buffer(m, r, a.bytes)) {
      if (a.mask != nullptr && a.mask->form == Form::kBox) clear();
      const std::byte* data = m.buffer(buffer_of(r.low)).data;
      const int64_t n = r.rank == 0 ? 1 : r.size[r.rank - 1];
      const int64_t stride = r.rank == 0 ? a.bytes : r.stride[r.rank - 1];
      const int64_t lane_stride = r.rank == 0 ? 1 : r.lane_stride[r.rank - 1];
      m.bytes += r.lanes() * a.bytes;
      if (sanitize) {
        report_if_misaligned(m, a.location, r.address, a.bytes);
        note_rows(r, a.bytes, [&](int64_t address, int64_t bytes) { note(m, a, address, bytes); });
        if (passes_data(m, r.low) && !a.atomic) note_lane_rows(m, a, r, LaneAccess::kRead);
      }
      walk(r, [&](int64_t address, int64_t lane) {
        read_row(a.bytes, data + offset_of(address), stride, out + lane * a.bytes, lane_stride, n);
      });
      return;
    }
  }
  clear();
  m.lane_log.next();
  for_each_lane(m, a, [&](int64_t lane, int64_t address) {
    if (sanitize) {
      report_if_misaligned(m, a.location, address, a.bytes);
      note(m, a, address, a.bytes);
      if (passes_data(m, address) && !a.atomic)
        note_lane_row(m, a, LaneAccess::kRead, address, 1, a.bytes, lane, 1);
    }
    std::memcpy(out + lane * a.bytes, m.buffer(buffer_of(address)).data + offset_of(address),
                static_cast<size_t>(a.bytes));
  });
}

std::byte* whole_tile(Machine& m, const Access& a) {
  if (!by_rows(a) || a.pointers->form != Form::kAffine) return nullptr;
  const Rows r = rows_of(a);
  if (r.none || r.rank != 1 || r.size[0] != a.lanes || r.stride[0] != a.bytes || r.lane_stride[0] != 1 ||
      offset_of(r.address) % a.bytes != 0 || !all_in_one_buffer(m, r, a.bytes))
    return nullptr;
  std::byte* at = m.buffer(buffer_of(r.address)).data + offset_of(r.address);
  if (reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(a.bytes) != 0) return nullptr;
  if (m.context().sanitize) {
    note(m, a, r.address, a.lanes * a.bytes);
    if (passes_data(m, r.low) && !a.atomic) note_lane_rows(m, a, r, LaneAccess::kRead);
  }
  m.bytes += a.lanes * a.bytes;
  return at;
}

void write_tile(Machine& m, const Access& a, const std::byte* from, int step) {
  if (a.mask != nullptr && a.mask->form == Form::kUniform && a.mask->base == 0) return;
  const bool sanitize = m.context().sanitize;
  ++m.stores;
  if (by_rows(a)) {
    const Rows r = rows_of(a);
    if (r.none) return;
    if (all_in_one_buffer(m, r, a.bytes)) {
      std::byte* data = m.buffer(buffer_of(r.low)).data;
      const int64_t n = r.rank == 0 ? 1 : r.size[r.rank - 1];
      const int64_t stride = r.rank == 0 ? a.bytes : r.stride[r.rank - 1];
      const int64_t lane_stride = (r.rank == 0 ? 1 : r.lane_stride[r.rank - 1]) * step;
      m.bytes += r.lanes() * a.bytes;
      if (sanitize) {
        report_if_misaligned(m, a.location, r.address, a.bytes);
        note_rows(r, a.bytes, [&](int64_t address, int64_t bytes) {
          note_write(m, a.location, address, bytes, lanes_of(a));
        });
        if (passes_data(m, r.low)) note_lane_rows(m, a, r, LaneAccess::kWrite);
        if (step != 0) report_rivals(m, a, r, from);
      }
      walk(r, [&](int64_t address, int64_t lane) {
        write_row(a.bytes, data + offset_of(address), stride, from + lane * step * a.bytes, lane_stride, n);
      });
      return;
    }
  }
  m.lane_log.next();
  std::vector<Stored> elements;
  const bool may_rival = sanitize && step != 0 && a.lanes > 1;
  if (may_rival) elements.reserve(static_cast<size_t>(a.lanes));
  for_each_lane(m, a, [&](int64_t lane, int64_t address) {
    if (may_rival) elements.push_back({address, lane});
    if (sanitize) {
      report_if_misaligned(m, a.location, address, a.bytes);
      note_write(m, a.location, address, a.bytes, lanes_of(a));
      if (passes_data(m, address)) note_lane_row(m, a, LaneAccess::kWrite, address, 1, a.bytes, lane, 1);
    }
    std::memcpy(m.buffer(buffer_of(address)).data + offset_of(address), from + lane * step * a.bytes,
                static_cast<size_t>(a.bytes));
  });
  if (may_rival) report_rivals(m, a, elements, from);
}

}  // namespace nereid::ttir
