// Tensor descriptors: a block of a tensor at given indices, what is outside the tensor left out.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/atomic.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

const DescriptorData& descriptor(Machine& m, const Instruction& i) {
  static const DescriptorData kNone;
  const Value& v = m.slot(i.in[0]);
  return v.tile == nullptr ? kNone : *reinterpret_cast<const DescriptorData*>(v.tile->data());
}

// The block's lanes as an affine tile of addresses and a box of those inside the tensor. An access owns what
// it points to.
struct Block {
  Value pointers, mask;
  std::array<int32_t, kLazyRank> shape{};
  Access access;
};

// `first`: the block's first index in each dimension of the tensor. Bounds are those of the coordinates, as
// the hardware checks them; addresses are sums of 64 bits that may wrap (triton.tools.ragged_tma relies on
// it), so only where the lanes that are on end up matters.
void make_block(Machine& m, const Instruction& i, const DescriptorData& d, const int64_t* first,
                const int64_t* block_shape, int bytes, Block& b) {
  b.pointers.form = Form::kAffine;
  b.mask.form = Form::kBox;
  bool wild = buffer_of(d.base) < 0;
  uint64_t distance = 0;                 // from the base to lane 0
  __int128 low_lane = 0, high_lane = 0;  // from lane 0 to the least and the greatest that are on
  for (int k = 0; k < d.rank; ++k) {
    const auto size = static_cast<size_t>(k);
    b.shape[size] = static_cast<int32_t>(block_shape[k]);
    const int64_t low = std::clamp<int64_t>(-first[k], 0, block_shape[k]);
    const int64_t high = std::clamp<int64_t>(d.shape[size] - first[k], low, block_shape[k]);
    const uint64_t stride = static_cast<uint64_t>(d.strides[size]) * static_cast<uint64_t>(bytes);
    b.mask.low[k] = static_cast<int32_t>(low);
    b.mask.high[k] = static_cast<int32_t>(high);
    if (high - low <= 1) {  // one index at most: its stride is no step
      distance += stride * static_cast<uint64_t>(first[k] + low);
      continue;
    }
    const auto step = static_cast<int64_t>(stride);
    distance += stride * static_cast<uint64_t>(first[k]);
    b.pointers.stride[k] = step;
    (step < 0 ? low_lane : high_lane) += static_cast<__int128>(step) * (high - 1);
    (step < 0 ? high_lane : low_lane) += static_cast<__int128>(step) * low;
  }
  // An address further away than any buffer reaches is no address of this buffer's.
  const __int128 limit = __int128{1} << 46, from_base = static_cast<int64_t>(distance);
  if (from_base + high_lane > limit || from_base + low_lane < -limit || high_lane - low_lane > limit ||
      from_base > limit * 1024 || from_base < -limit * 1024)
    wild = true;
  b.pointers.base = wild ? 0 : d.base + static_cast<int64_t>(distance);
  if (wild) {
    b.pointers.form = Form::kUniform;
    for (auto& s : b.pointers.stride) s = 0;
  }
  b.access.pointers = &b.pointers;
  b.access.mask = &b.mask;
  b.access.shape = b.shape.data();
  b.access.rank = d.rank;
  b.access.lanes = 1;
  for (int k = 0; k < d.rank; ++k) b.access.lanes *= block_shape[k];
  b.access.bytes = bytes;
  b.access.location = i.location;
  b.access.by_engine = true;
  if (m.context().sanitize && !wild && bytes > 0 && (offset_of(d.base) % 16) != 0)
    report(m, FindingKind::kMisaligned, i.location, buffer_of(d.base), offset_of(d.base));
  for (int k = 0; k + 1 < d.rank && m.context().sanitize && !wild; ++k) {
    const auto size = static_cast<size_t>(k);
    if (d.shape[size] <= 1 || d.strides[size] % (16 / std::gcd(16, bytes)) == 0) continue;
    report(m, FindingKind::kMisaligned, i.location, -1, 0,
           fmt::format("a descriptor's stride of {} elements in dimension {} is not a multiple of 16 bytes",
                       d.strides[size], k));
    break;
  }
}

// Blocks that begin before the tensor, as Triton 3.6 moves them on a GPU of compute capability 9.0: a store
// traps in every dimension; a load leaves out what is before, but gives other elements where the last
// dimension begins by no multiple of 16 bytes before.
void check_start(Machine& m, const Instruction& i, const DescriptorData& d, const int64_t* first, int bytes,
                 bool store) {
  constexpr int64_t kLine = 16;
  if (!m.context().sanitize) return;
  for (int k = 0; k < d.rank; ++k) {
    if (first[k] >= 0 || (!store && (k + 1 < d.rank || first[k] * bytes % kLine == 0))) continue;
    const int64_t buffer = buffer_of(d.base);
    const bool known = buffer >= 0 && buffer < m.buffer_count();
    return report(
        m, FindingKind::kOutOfBounds, i.location, known ? buffer : -1, known ? offset_of(d.base) : 0,
        fmt::format("a descriptor's {} begins at coordinate {} of dimension {}, where {}",
                    store ? "store" : "load", first[k], k,
                    store ? "a GPU's bulk copy traps" : "a GPU's bulk copy needs a multiple of 16 bytes"));
  }
}

void drop(Machine& m, Block& b) {
  m.clear(b.pointers);
  m.clear(b.mask);
}

void fill_padding(const DescriptorData& d, Elem elem, Tile* tile, int64_t lanes) {
  const auto bytes = static_cast<size_t>(lanes * elem_bytes(elem));
  std::memset(tile->data(), 0, bytes);
  if (!d.nan_padding || !is_float(elem)) return;
  const uint64_t nan = elem == Elem::kF64    ? 0x7ff8000000000000u
                       : elem == Elem::kF32  ? 0x7fc00000u
                       : elem == Elem::kF16  ? 0x7e00u
                       : elem == Elem::kBF16 ? 0x7fc0u
                                             : 0x7fu;
  for (int64_t k = 0; k < lanes; ++k)
    std::memcpy(tile->data() + k * elem_bytes(elem), &nan, static_cast<size_t>(elem_bytes(elem)));
}

}  // namespace

// inputs: base, shape.., strides..; numbers: rank; flags: kPropagateNan for NaN padding.
void make_descriptor(Machine& m, const Instruction& i) {
  Tile* tile = m.pool().take(sizeof(DescriptorData));
  auto* d = new (tile->data()) DescriptorData;
  d->rank = static_cast<int32_t>(i.extra->numbers[0]);
  d->nan_padding = (i.flags & kPropagateNan) != 0;
  const auto& in = i.extra->inputs;
  d->base = m.slot(in[0]).base;
  for (size_t k = 0; k < static_cast<size_t>(d->rank); ++k) {
    d->shape[k] = m.slot(in[1 + k]).base;
    d->strides[k] = m.slot(in[1 + static_cast<size_t>(d->rank) + k]).base;
  }
  m.set_dense(i.out, tile);
}

// in[0]: the descriptor; extra->inputs: the indices; in_shape: the block's shape.
void descriptor_load(Machine& m, const Instruction& i) {
  const DescriptorData d = descriptor(m, i);
  Tile* tile = m.pool().take(i.lanes * elem_bytes(i.out_elem));
  fill_padding(d, i.out_elem, tile, i.lanes);
  int64_t first[kLazyRank] = {};
  for (size_t k = 0; k < i.extra->inputs.size(); ++k) first[k] = m.slot(i.extra->inputs[k]).base;
  check_start(m, i, d, first, elem_bytes(i.out_elem), false);
  Block b;
  make_block(m, i, d, first, i.extra->in_shape.data(), elem_bytes(i.out_elem), b);
  read_tile(m, b.access, tile->data());
  drop(m, b);
  m.set_dense(i.out, tile);
}

// in[1]: the value.
void descriptor_store(Machine& m, const Instruction& i) {
  const DescriptorData d = descriptor(m, i);
  int64_t first[kLazyRank] = {};
  for (size_t k = 0; k < i.extra->inputs.size(); ++k) first[k] = m.slot(i.extra->inputs[k]).base;
  const std::byte* from = m.dense(m.slot(i.in[1]), i.elem, i, i.lanes);
  check_start(m, i, d, first, elem_bytes(i.elem), true);
  Block b;
  make_block(m, i, d, first, i.extra->in_shape.data(), elem_bytes(i.elem), b);
  write_tile(m, b.access, from, 1);
  drop(m, b);
}

// in: descriptor, rows, column. The block is one row high.
void descriptor_gather(Machine& m, const Instruction& i) {
  const DescriptorData d = descriptor(m, i);
  const int bytes = elem_bytes(i.out_elem);
  const int64_t columns = i.extra->in_shape[1], rows = i.lanes / columns;
  Tile* tile = m.pool().take(i.lanes * bytes);
  fill_padding(d, i.out_elem, tile, i.lanes);
  const int32_t shape[1] = {static_cast<int32_t>(rows)};
  const std::byte* index = m.dense(m.slot(i.in[1]), i.extra->elems[0], shape, 1, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first[2] = {canonical_bits(index + r * elem_bytes(i.extra->elems[0]), i.extra->elems[0]),
                              m.slot(i.in[2]).base};
    Block b;
    make_block(m, i, d, first, i.extra->in_shape.data(), bytes, b);
    read_tile(m, b.access, tile->data() + r * columns * bytes);
    drop(m, b);
  }
  m.set_dense(i.out, tile);
}

// in: descriptor, rows, column, value.
void descriptor_scatter(Machine& m, const Instruction& i) {
  const DescriptorData d = descriptor(m, i);
  const int bytes = elem_bytes(i.elem);
  const int64_t columns = i.extra->in_shape[1], rows = i.lanes / columns;
  const int32_t shape[1] = {static_cast<int32_t>(rows)};
  const std::byte* index = m.dense(m.slot(i.in[1]), i.extra->elems[0], shape, 1, rows);
  const std::byte* from = m.dense(m.slot(i.in[3]), i.elem, i, i.lanes);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first[2] = {canonical_bits(index + r * elem_bytes(i.extra->elems[0]), i.extra->elems[0]),
                              m.slot(i.in[2]).base};
    Block b;
    make_block(m, i, d, first, i.extra->in_shape.data(), bytes, b);
    write_tile(m, b.access, from + r * columns * bytes, 1);
    drop(m, b);
  }
}

// in: descriptor, value; axis: the Rmw.
void descriptor_reduce(Machine& m, const Instruction& i) {
  const DescriptorData d = descriptor(m, i);
  const int bytes = elem_bytes(i.elem);
  int64_t first[kLazyRank] = {};
  for (size_t k = 0; k < i.extra->inputs.size(); ++k) first[k] = m.slot(i.extra->inputs[k]).base;
  const std::byte* from = m.dense(m.slot(i.in[1]), i.elem, i, i.lanes);
  Block b;
  make_block(m, i, d, first, i.extra->in_shape.data(), bytes, b);
  for_each_lane(m, b.access, [&](int64_t lane, int64_t address) {
    if (offset_of(address) % bytes != 0) return;
    note_atomic(m, i.location, address, bytes, std::max<int64_t>(i.lanes, 2));
    uint64_t operand = 0;
    std::memcpy(&operand, from + lane * bytes, static_cast<size_t>(bytes));
    ttir::atomic_rmw(static_cast<Rmw>(i.axis), i.elem, m.buffer(buffer_of(address)).data + offset_of(address),
                     operand);
  });
  drop(m, b);
}

}  // namespace nereid::ttir::handlers
