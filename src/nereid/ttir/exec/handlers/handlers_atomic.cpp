#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/atomic.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

// Of every other program whose lanes are late, by chance: the others get to read what is not there yet.
constexpr int kStalls = 32;
bool is_slow(int64_t program) {
  return ((static_cast<uint64_t>(program) + 1) * 0x9e3779b97f4a7c15 >> 63) != 0;
}
constexpr size_t kMostLate = size_t{1} << 20;

// Reads an operand's lanes whatever its form.
struct Lanes {
  const std::byte* data;
  Elem elem;
  bool uniform;
  uint64_t operator[](int64_t lane) const {
    return static_cast<uint64_t>(canonical_bits(data + (uniform ? 0 : lane * elem_bytes(elem)), elem));
  }
};
Lanes lanes_of(Machine& m, const Instruction& i, int which, Elem elem) {
  Value& v = m.slot(i.in[which]);
  if (v.form == Form::kUniform) return {reinterpret_cast<const std::byte*>(&v.base), elem, true};
  return {m.dense(v, elem, i, i.lanes), elem, false};
}

// Runs `update(lane, memory)` on every lane and keeps the old bits as the result. `writes_the_same`: an
// update that leaves the bits as they are publishes what its program did all the same; one that adds zero, or
// compares in vain, is how a program polls.
// `late`: lanes but the first only say what they will do.
template <class F>
void update_lanes(Machine& m, const Instruction& i, int mask, bool writes_the_same, bool late, F update) {
  if (!late && i.rank > 0) m.arrive();
  const int bytes = elem_bytes(i.out_elem);
  Access a;
  a.pointers = &m.slot(i.in[0]);
  a.mask = mask >= 0 ? &m.slot(i.in[mask]) : nullptr;
  a.shape = i.shape.data();
  a.rank = i.rank;
  a.lanes = i.lanes;
  a.bytes = bytes;
  a.location = i.location;
  m.lane_log.next();
  Tile* old = m.pool().take(i.lanes * bytes);
  std::memset(old->data(), 0, static_cast<size_t>(i.lanes * bytes));
  for_each_lane(m, a, [&](int64_t lane, int64_t address) {
    if (offset_of(address) % bytes != 0)  // the GPU faults here
      return report(m, FindingKind::kMisaligned, i.location, buffer_of(address), offset_of(address));
    note_atomic(m, i.location, address, bytes, i.lanes);
    const std::byte* memory = m.buffer(buffer_of(address)).data + offset_of(address);
    const uint64_t bits = update(lane, const_cast<std::byte*>(memory));
    std::memcpy(old->data() + lane * bytes, &bits, static_cast<size_t>(bytes));
    const bool changed = late || std::memcmp(memory, &bits, static_cast<size_t>(bytes)) != 0;
    if (changed) {
      ++m.stores;
      m.polled = false;
    } else {
      m.polled = true;
      m.poll_location = i.location;
    }
    if (i.flags & kAcquires) note_acquired(m, address);
    if ((i.flags & kReleases) && (changed || writes_the_same)) note_released(m, address);
    if (m.context().sanitize && passes_data(m, address))
      note_lanes(m, LaneAccess::kAtomic, {address, bytes, lane, i.lanes, bytes, i.location});
  });
  if (i.flags & kHandsRound) note_barrier(m);
  // A program that goes on polling stays one that waits.
  const bool yields = m.switches && !(m.polled && m.waited);
  if (yields) m.wants_yield = true, m.running = false;
  if (yields && i.rank == 0 && !m.late.empty() && is_slow(m.linear)) m.stalls = kStalls;
  if (i.flags & kHandsRound) yields ? void(m.arrives = true) : m.arrive();
  if (i.lanes == 1 && i.rank == 0) {
    const int64_t bits = canonical_bits(old->data(), i.out_elem);
    m.pool().release(old);
    return m.set_uniform(i.out, bits);
  }
  m.set_dense(i.out, old);
}

}  // namespace

// in: pointers, value, mask; axis: the Rmw.
void atomic_rmw(Machine& m, const Instruction& i) {
  const auto rmw = static_cast<Rmw>(i.axis);
  const Lanes value = lanes_of(m, i, 1, i.out_elem);
  const bool adds = rmw == Rmw::kAdd || rmw == Rmw::kFadd || rmw == Rmw::kOr;
  const bool late = m.switches && i.lanes > 1 && (i.flags & kForgotten) && m.late.size() < kMostLate;
  update_lanes(m, i, i.flags & kHasMask ? 2 : -1, !adds, late, [&](int64_t lane, void* memory) -> uint64_t {
    if (!late || lane == 0) return ttir::atomic_rmw(rmw, i.out_elem, memory, value[lane]);
    m.late.push_back({memory, value[lane], rmw, i.out_elem});
    return 0;  // a result that no operation uses
  });
}

// in: pointers, compared, stored.
void atomic_cas(Machine& m, const Instruction& i) {
  const Lanes compared = lanes_of(m, i, 1, i.out_elem), stored = lanes_of(m, i, 2, i.out_elem);
  update_lanes(m, i, -1, false, false, [&](int64_t lane, void* memory) {
    return atomic_compare_exchange(i.out_elem, memory, compared[lane], stored[lane]);
  });
}

}  // namespace nereid::ttir::handlers
