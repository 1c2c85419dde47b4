#include "nereid/ttir/exec/machine.h"

#include <algorithm>

namespace nereid::ttir {
namespace {

template <class T>
void fill_uniform(void* out, int64_t bits, int64_t n) {
  T* o = static_cast<T*>(out);
  std::fill(o, o + n, static_cast<T>(bits));
}

template <class T>
void fill_affine(T* out, int64_t base, const int64_t* stride, const int32_t* shape, int rank) {
  if (rank == 0) {
    *out = static_cast<T>(base);
    return;
  }
  if (rank == 1) {
    const auto step = static_cast<std::make_unsigned_t<T>>(stride[0]);
    for (int32_t i = 0; i < shape[0]; ++i)
      out[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(base) +
                              step * static_cast<std::make_unsigned_t<T>>(i));
    return;
  }
  int64_t inner = 1;
  for (int d = 1; d < rank; ++d) inner *= shape[d];
  for (int32_t i = 0; i < shape[0]; ++i)
    fill_affine(out + i * inner,
                static_cast<int64_t>(static_cast<uint64_t>(base) +
                                     static_cast<uint64_t>(stride[0]) * static_cast<uint64_t>(i)),
                stride + 1, shape + 1, rank - 1);
}

void fill_box(uint8_t* out, const Value& v, int d, bool inside, const int32_t* shape, int rank) {
  if (d == rank - 1) {
    std::memset(out, 0, static_cast<size_t>(shape[d]));
    if (inside && v.high[d] > v.low[d])
      std::memset(out + v.low[d], 1, static_cast<size_t>(v.high[d] - v.low[d]));
    return;
  }
  int64_t inner = 1;
  for (int e = d + 1; e < rank; ++e) inner *= shape[e];
  for (int32_t i = 0; i < shape[d]; ++i)
    fill_box(out + i * inner, v, d + 1, inside && i >= v.low[d] && i < v.high[d], shape, rank);
}

}  // namespace

int64_t canonical_bits(const void* element, Elem elem) {
  switch (elem) {
    case Elem::kI1:
      return *static_cast<const uint8_t*>(element) & 1;
    case Elem::kI8:
      return *static_cast<const int8_t*>(element);
    case Elem::kI16:
      return *static_cast<const int16_t*>(element);
    case Elem::kI32:
      return *static_cast<const int32_t*>(element);
    default:
      break;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(elem_bytes(elem)));
  return static_cast<int64_t>(bits);
}

Machine::Machine(const LaunchContext& context, TilePool& pool) : context_(context), pool_(pool) {
  slots_.resize(static_cast<size_t>(context.code->slots));
}

Machine::~Machine() {
  for (Value& v : slots_) clear(v);
}

void Machine::reset() {
  for (const int32_t s : context_.code->program_slots) clear(slot(s));
}

void Machine::start(int64_t linear_id, std::array<int64_t, 3> program_id) {
  linear = linear_id;
  program = program_id;
  pc = 0;
  spins = 0;
  polled = waits = false;
  late.clear();
  arrives = false;
  stalls = 0;
  lane_log.barrier();
  overflow_location = prologue_overflow_;
  running = true;
}

void Machine::execute(const std::vector<Instruction>& code) {
  const Instruction* const first = code.data();
  while (running) {
    const Instruction& i = first[pc++];
    i.run(*this, i);
    flops += static_cast<double>(i.flops);
    for (unsigned kills = i.kills; kills != 0; kills &= kills - 1) {
      Value& v = slot(i.in[__builtin_ctz(kills)]);
      if (v.tile != nullptr) clear(v);
    }
  }
}

double Machine::count() {
  const std::vector<Instruction>& code = context_.code->body;
  double flops = 0;
  running = true;
  while (running && count_left > 0) {
    const Instruction& i = code[static_cast<size_t>(pc++)];
    i.run(*this, i);
    flops += static_cast<double>(i.flops);
    count_left -= 1 + (i.out >= 0 && slot(i.out).form == Form::kDense ? i.lanes / 64 : 0);
    running = running || wants_yield;
    wants_yield = false;
  }
  return flops;
}

void Machine::run_prologue() {
  running = true;
  for (const Instruction& i : context_.code->prologue) i.run(*this, i);
  running = false;
  prologue_overflow_ = overflow_location;
}

void Machine::arrive() {
  arrives = false;
  for (const auto& l : late) atomic_rmw(l.rmw, l.elem, l.memory, l.operand);
  late.clear();
}

Machine::State Machine::resume(int64_t) {
  if (stalls > 0) {
    --stalls;
    return State::kYielded;
  }
  if (arrives) arrive();
  running = true;
  waited = waits;
  waits = false;
  execute(context_.code->body);
  if (timed_out) return State::kTimedOut;
  if (wants_yield) {
    wants_yield = false;
    return State::kYielded;
  }
  arrive();
  return State::kFinished;
}

void Machine::run_body(const std::vector<Instruction>& body, int64_t lanes) {
  const int64_t saved = lanes_;
  lanes_ = lanes;
  for (const Instruction& i : body) {
    i.run(*this, i);
    for (unsigned kills = i.kills; kills != 0; kills &= kills - 1) {
      Value& v = slot(i.in[__builtin_ctz(kills)]);
      if (v.tile != nullptr) clear(v);
    }
  }
  lanes_ = saved;
}

Tile* Machine::result_tile(const Instruction& i, int64_t bytes, int operand_bytes) {
  for (unsigned kills = i.kills; kills != 0; kills &= kills - 1) {
    Value& v = slot(i.in[__builtin_ctz(kills)]);
    if (v.form == Form::kDense && v.tile->references == 1 && !v.tile->borrowed() &&
        operand_bytes * lanes(i) == bytes && (int64_t{1} << v.tile->size_class) >= bytes) {
      ++v.tile->references;  // the operand's own reference goes when the instruction ends
      return v.tile;
    }
  }
  return pool_.take(bytes);
}

const std::byte* Machine::dense(Value& value, Elem elem, const Instruction& shaped, int64_t lanes) {
  return dense(value, elem, shaped.shape.data(), shaped.rank, lanes);
}

const std::byte* Machine::dense(Value& value, Elem elem, const int32_t* shape, int rank, int64_t lanes) {
  if (value.tile != nullptr) {
    if (value.form == Form::kDense || lanes_ == 0) return value.tile->data();
    pool_.release(value.tile);  // in a combine region the number of lanes changes from run to run
    value.tile = nullptr;
  }
  const int bytes = elem_bytes(elem);
  Tile* tile = pool_.take(lanes * bytes);
  std::byte* out = tile->data();
  if (value.form == Form::kAffine) {
    switch (bytes) {
      case 1:
        fill_affine(reinterpret_cast<int8_t*>(out), value.base, value.stride, shape, rank);
        break;
      case 2:
        fill_affine(reinterpret_cast<int16_t*>(out), value.base, value.stride, shape, rank);
        break;
      case 4:
        fill_affine(reinterpret_cast<int32_t*>(out), value.base, value.stride, shape, rank);
        break;
      default:
        fill_affine(reinterpret_cast<int64_t*>(out), value.base, value.stride, shape, rank);
        break;
    }
  } else if (value.form == Form::kBox) {
    fill_box(reinterpret_cast<uint8_t*>(out), value, 0, true, shape, rank);
  } else {
    const int64_t bits = value.form == Form::kUniform ? value.base : 0;
    switch (bytes) {
      case 1:
        fill_uniform<uint8_t>(out, bits, lanes);
        break;
      case 2:
        fill_uniform<uint16_t>(out, bits, lanes);
        break;
      case 4:
        fill_uniform<uint32_t>(out, bits, lanes);
        break;
      default:
        fill_uniform<uint64_t>(out, bits, lanes);
        break;
    }
  }
  value.tile = tile;
  return out;
}

void Machine::copy(int32_t to, int32_t from) {
  if (to == from) return;
  Value& target = slot(to);
  const Value& source = slot(from);
  // The elements of a lazy value are for one shape; the copy may have another.
  Tile* tile = source.form == Form::kDense ? source.tile : nullptr;
  if (tile != nullptr) ++tile->references;
  Tile* old = target.tile;
  target = source;
  target.tile = tile;
  if (old != nullptr) pool_.release(old);
}

void Machine::share_elements(int32_t to, int32_t from) {
  Tile* tile = slot(from).tile;
  ++tile->references;
  set_dense(to, tile);
}

void Machine::move(int32_t to, int32_t from, bool kill) {
  copy(to, from);
  if (kill && to != from) clear(slot(from));
}

}  // namespace nereid::ttir
