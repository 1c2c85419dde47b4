// What instructions do. One function for each way of running; the lowering picks.
#pragma once

#include "nereid/ttir/exec/machine.h"

namespace nereid::ttir {

// Instruction::flags
enum InstructionFlag : uint8_t {
  kAddressFlag = 1,  // the result goes into an address: an overflow is reported
  kPropagateNan = 2,
  kReverse = 4,
  kUnsigned = 8,
  kHasMask = 16,
  kHasOther = 32,
  kVolatile = 64,
  kReleases = 128,  // of an atomic
  kAcquires = 4,    // of an atomic
  kHandsRound = 8,  // a scalar atomic whose result is used: its lowering ends with a barrier
  kForgotten = 2,   // an atomic whose result is not used
};

// Instruction::axis of a load whose result is used up before anything is written: it may stay where it is.
constexpr int8_t kMayBorrow = 1;

namespace handlers {

// elementwise (handlers_elementwise.cpp)
void constant(Machine& m, const Instruction& i);
void scalar_integer(Machine& m, const Instruction& i);
void scalar_compare(Machine& m, const Instruction& i);
void binary(Machine& m, const Instruction& i);         // any type that has a kernel
void binary_narrow(Machine& m, const Instruction& i);  // f16, bf16, f8 through f32
void unary(Machine& m, const Instruction& i);
void unary_narrow(Machine& m, const Instruction& i);
void ternary(Machine& m, const Instruction& i);
void ternary_narrow(Machine& m, const Instruction& i);
void compare_narrow(Machine& m, const Instruction& i);
void select(Machine& m, const Instruction& i);
void convert(Machine& m, const Instruction& i);
void convert_narrow(Machine& m,
                    const Instruction& i);  // kernels[0] to f32 (or null), kernels[1] from f32 (or null)
void narrow_toward_zero(Machine& m, const Instruction& i);
void bitcast(Machine& m, const Instruction& i);
void integer_to_i1(Machine& m, const Instruction& i);
void classify(Machine& m, const Instruction& i);  // isnan, isinf, isfinite

// integers and pointers in lazy form (handlers_lazy.cpp)
void integer_binary(Machine& m, const Instruction& i);
void integer_compare(Machine& m, const Instruction& i);
void integer_convert(Machine& m, const Instruction& i);
void addptr(Machine& m, const Instruction& i);

// shapes (handlers_shape.cpp)
void make_range(Machine& m, const Instruction& i);
void splat(Machine& m, const Instruction& i);
void unsplat(Machine& m, const Instruction& i);
void expand_dims(Machine& m, const Instruction& i);
void broadcast(Machine& m, const Instruction& i);
void reshape(Machine& m, const Instruction& i);
void trans(Machine& m, const Instruction& i);
void join(Machine& m, const Instruction& i);
void split(Machine& m, const Instruction& i);
void cat(Machine& m, const Instruction& i);
void unordered(Machine& m, const Instruction& i);  // the operand's elements in another order
void gather(Machine& m, const Instruction& i);
void histogram(Machine& m, const Instruction& i);

// memory (handlers_memory.cpp, handlers_descriptor.cpp, handlers_atomic.cpp)
void load(Machine& m, const Instruction& i);
void store(Machine& m, const Instruction& i);
void int_to_ptr(Machine& m, const Instruction& i);
void ptr_to_int(Machine& m, const Instruction& i);
void make_descriptor(Machine& m, const Instruction& i);
void descriptor_load(Machine& m, const Instruction& i);
void descriptor_store(Machine& m, const Instruction& i);
void descriptor_gather(Machine& m, const Instruction& i);
void descriptor_scatter(Machine& m, const Instruction& i);
void descriptor_reduce(Machine& m, const Instruction& i);
void atomic_rmw(Machine& m, const Instruction& i);
void atomic_cas(Machine& m, const Instruction& i);

// whole tiles (handlers_reduce.cpp, handlers_dot.cpp)
void reduce(Machine& m, const Instruction& i);
void reduce_fast(Machine& m, const Instruction& i);
void scan(Machine& m, const Instruction& i);
void map_elementwise(Machine& m, const Instruction& i);
void dot(Machine& m, const Instruction& i);
void dot_scaled(Machine& m, const Instruction& i);

// control (handlers_control.cpp)
void program_id(Machine& m, const Instruction& i);
void num_programs(Machine& m, const Instruction& i);
void jump(Machine& m, const Instruction& i);
void branch_unless(Machine& m, const Instruction& i);  // jumps to the target unless in[0]
void moves(Machine& m, const Instruction& i);          // extra inputs to extra outputs, all at once
void for_enter(Machine& m, const Instruction& i);
void for_test(Machine& m, const Instruction& i);
void for_next(Machine& m, const Instruction& i);
void finish(Machine& m, const Instruction& i);
void assertion(Machine& m, const Instruction& i);
void hint(Machine& m, const Instruction& i);  // extra numbers: divisibility by dimension, then contiguity
void nothing(Machine& m, const Instruction& i);
void barrier(Machine& m, const Instruction& i);

// external functions and assembly (libdevice.cpp, inline_assembly.cpp)
void external(Machine& m, const Instruction& i);
void assembly(Machine& m, const Instruction& i);

}  // namespace handlers
}  // namespace nereid::ttir
