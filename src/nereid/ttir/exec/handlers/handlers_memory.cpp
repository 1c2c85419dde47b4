#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

Access access_of(Machine& m, const Instruction& i, int bytes, int mask) {
  Access a;
  a.pointers = &m.slot(i.in[0]);
  a.mask = mask >= 0 ? &m.slot(i.in[mask]) : nullptr;
  a.shape = i.shape.data();
  a.rank = i.rank;
  a.lanes = i.lanes;
  a.bytes = bytes;
  a.location = i.location;
  a.atomic = (i.flags & kVolatile) != 0;
  return a;
}

}  // namespace

// in: pointers, mask, other. A lane that is off takes `other`, or zero.
void load(Machine& m, const Instruction& i) {
  if (!m.late.empty()) m.arrive();
  const int bytes = elem_bytes(i.out_elem);
  const Access a = access_of(m, i, bytes, i.flags & kHasMask ? 1 : -1);
  const bool everywhere = a.mask == nullptr || (a.mask->form == Form::kUniform && a.mask->base != 0);
  if (a.pointers->form == Form::kUniform && everywhere) {  // one element for all
    Access one = a;
    one.rank = 0;
    one.lanes = 1;
    one.mask = nullptr;
    int64_t element = 0;
    read_tile(m, one, reinterpret_cast<std::byte*>(&element));
    if (i.out_elem == Elem::kI1) element = (element & 0xff) != 0;
    return m.set_uniform(i.out, canonical_bits(&element, i.out_elem));
  }
  if (i.axis == kMayBorrow && everywhere) {
    if (std::byte* const at = whole_tile(m, a)) return m.set_dense(i.out, m.pool().borrow(at));
  }
  Tile* tile = nullptr;
  Unread unread = Unread::kZero;
  Value* const other = i.flags & kHasOther ? &m.slot(i.in[2]) : nullptr;
  // What lanes that are off take is of no matter where none is.
  const bool filled = other != nullptr && !(everywhere && a.pointers->form == Form::kAffine) &&
                      !(other->form == Form::kUniform && other->base == 0);
  if (!filled) {
    tile = m.pool().take(i.lanes * bytes);
  } else {
    unread = Unread::kLeft;
    Value fill;
    if (other->form == Form::kUniform) {
      fill.form = Form::kUniform;
      fill.base = other->base;
      m.dense(fill, i.out_elem, i, i.lanes);
      tile = fill.tile;
    } else {
      tile = m.pool().take(i.lanes * bytes);
      std::memcpy(tile->data(), m.dense(*other, i.out_elem, i, i.lanes),
                  static_cast<size_t>(i.lanes * bytes));
    }
  }
  read_tile(m, a, tile->data(), unread);
  if (i.out_elem == Elem::kI1) {
    auto* bits = reinterpret_cast<uint8_t*>(tile->data());
    for (int64_t k = 0; k < i.lanes; ++k) bits[k] = bits[k] != 0;
  }
  if (i.rank == 0) {  // a scalar, its mask off
    const int64_t bits = canonical_bits(tile->data(), i.out_elem);
    m.pool().release(tile);
    return m.set_uniform(i.out, bits);
  }
  m.set_dense(i.out, tile);
}

// in: pointers, value, mask.
void store(Machine& m, const Instruction& i) {
  const int bytes = elem_bytes(i.elem);
  const Access a = access_of(m, i, bytes, i.flags & kHasMask ? 2 : -1);
  Value& value = m.slot(i.in[1]);
  if (value.form == Form::kUniform)
    return write_tile(m, a, reinterpret_cast<const std::byte*>(&value.base), 0);
  write_tile(m, a, m.dense(value, i.elem, i, i.lanes), 1);
}

// An address that was a number has no buffer: whatever is done with it is out of bounds.
void int_to_ptr(Machine& m, const Instruction& i) { m.set_uniform(i.out, 0); }

void ptr_to_int(Machine& m, const Instruction& i) { m.copy(i.out, i.in[0]); }

}  // namespace nereid::ttir::handlers
