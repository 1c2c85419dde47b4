// One thread's machine: it runs the instructions of a lowered kernel, one program instance after the other.
//
// A kernel is a flat list of instructions over numbered slots. A slot holds a Value, which is kept in the
// cheapest form that says it all:
//   kUniform  all lanes alike: a scalar, or a splat
//   kAffine   integers and pointers: base + sum of stride[d] * index[d]. No lane of an i32 wraps (else it is
//   dense). kBox      masks: the lanes with low[d] <= index[d] < high[d] for every d kDense    one element
//   after the other in a tile, row-major
// So index arithmetic costs a few scalar operations, and a load or store sees rows instead of lanes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "nereid/ttir/exec/atomic.h"
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/exec/races/happens_before.h"
#include "nereid/ttir/exec/races/lane_log.h"
#include "nereid/ttir/exec/races/race_log.h"
#include "nereid/ttir/exec/tile.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

class Machine;
struct Instruction;
struct Code;
class PtxProgram;
class Sanitizer;

enum class Form : uint8_t { kEmpty, kUniform, kAffine, kBox, kDense };
constexpr int kLazyRank = 5;  // beyond it affine values and boxes become dense

struct Value {
  Form form = Form::kEmpty;
  Tile* tile =
      nullptr;  // kDense: the elements. Else null, or the elements all the same (made once when asked for)
  int64_t base = 0;  // kUniform: the bits (integers sign-extended, i1 0 or 1); kAffine: lane 0
  union {
    int64_t stride[kLazyRank];
    struct {
      int32_t low[kLazyRank], high[kLazyRank];
    };
  };
  Value() : stride{} {}
};

// Addresses: the buffer's number and the byte offset in one integer. Arithmetic that leaves a buffer's share
// of the space gives the wild address 0 instead of another buffer.
constexpr int kAddressShift = 47;
constexpr int64_t kMaxBuffers = 60000;
constexpr int64_t address_of(int64_t buffer, int64_t offset) {
  return (((buffer + 1) << kAddressShift) | (int64_t{1} << (kAddressShift - 1))) + offset;
}
constexpr int64_t buffer_of(int64_t address) {
  return static_cast<int64_t>(static_cast<uint64_t>(address) >> kAddressShift) - 1;
}
constexpr int64_t offset_of(int64_t address) {
  return (address & ((int64_t{1} << kAddressShift) - 1)) - (int64_t{1} << (kAddressShift - 1));
}

// What a tensor descriptor holds, in a tile.
struct DescriptorData {
  int64_t base = 0;
  int32_t rank = 0;
  bool nan_padding = false;
  std::array<int64_t, 5> shape{}, strides{};  // strides in elements
};

using Handler = void (*)(Machine&, const Instruction&);
constexpr int kInputs = 5;

// Parts of an instruction that few have.
struct Extra {
  std::vector<int32_t> inputs, outputs, targets;
  std::vector<bool> kills;  // for `inputs`
  std::vector<int64_t> in_shape, out_shape, numbers;
  std::vector<uint64_t> constant;
  std::vector<Elem> elems;  // of `outputs`
  std::string text;
  std::vector<Instruction> body;  // a combine region, run with any number of lanes
  std::vector<int32_t> body_inputs, body_outputs;
  const void* kernels[4] = {};
  std::shared_ptr<const PtxProgram> assembly;
};

struct Instruction {
  Handler run = nullptr;
  const void* kernel = nullptr;  // an elementwise loop
  const Extra* extra = nullptr;
  int32_t out = -1;
  int32_t in[kInputs] = {-1, -1, -1, -1, -1};
  int64_t lanes = 1;  // elements of the result; 0: as many as the machine says (in a combine region)
  LocationId location = -1;
  OpKind kind = OpKind::kCount;
  Elem elem = Elem::kNone;  // of the first operand
  Elem out_elem = Elem::kNone;
  uint8_t kills = 0;  // bit i: in[i] is not used again
  uint8_t inputs = 0;
  int8_t rank = 0;  // of the result
  int8_t axis = 0;
  uint8_t flags = 0;
  int32_t target = -1;
  float flops = 0;                         // of one run, for counting
  std::array<int32_t, kLazyRank> shape{};  // of the result where rank <= kLazyRank
};

// A kernel ready to run.
struct Code {
  std::vector<Instruction> prologue, body;  // prologue: what is the same for every program of a launch
  std::vector<std::unique_ptr<Extra>> extras;
  int32_t slots = 0, prologue_slots = 0;
  std::vector<int32_t> parameter_slots;
  std::vector<Type> parameter_types;
  std::vector<int32_t> program_slots;  // those that the prologue does not set
  bool synchronizes = false;  // has an atomic whose result is used, or a volatile load: programs may wait
  bool communicates = false;  // has an atomic or a volatile load
};

struct LaunchContext {
  const Launch* launch = nullptr;
  const std::vector<Buffer>* buffers = nullptr;
  const Code* code = nullptr;
  const std::vector<SourceLine>* lines = nullptr;
  std::string kernel;
  Deadline deadline = Deadline::never();
  bool sanitize = false;
  Sanitizer* sanitizer = nullptr;
  std::vector<bool> watched;  // by buffer: whether programs could race there; empty when nothing is watched
  std::vector<bool> passed;   // by buffer: whether a program both reads and writes there
  HappensBefore* history = nullptr;  // set where atomics order programs, which then run one at a time
};

class Machine {
 public:
  Machine(const LaunchContext& context, TilePool& pool);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Runs the prologue: parameters must be set. Then programs, any number of them.
  void set_parameters();
  void run_prologue();
  enum class State { kFinished, kYielded, kTimedOut };
  void start(int64_t linear, std::array<int64_t, 3> program);
  State resume(
      int64_t back_edges);  // until the end, the deadline, or so many loop iterations that were spinning
  double count();           // runs the program, adding up the flops of its instructions
  void reset();             // forgets the values of the last program

  // What a tile's lanes but the first have still to do to memory: where programs switch, atomics whose
  // results are not used happen as late as they may, at the program's next barrier (docs/verdicts.md,
  // `order-dependent`).
  struct LateAtomic {
    void* memory;
    uint64_t operand;
    Rmw rmw;
    Elem elem;
  };
  void arrive();  // does it

  // For handlers.
  Value& slot(int32_t index) { return slots_[static_cast<size_t>(index)]; }
  const LaunchContext& context() const { return context_; }
  const Buffer& buffer(int64_t index) const { return (*context_.buffers)[static_cast<size_t>(index)]; }
  int64_t buffer_count() const { return static_cast<int64_t>(context_.buffers->size()); }
  TilePool& pool() { return pool_; }
  int64_t lanes(const Instruction& i) const { return i.lanes != 0 ? i.lanes : lanes_; }

  void clear(Value& value) {
    if (value.tile != nullptr) pool_.release(value.tile);
    value.tile = nullptr;
    value.form = Form::kEmpty;
  }
  void set_uniform(int32_t index, int64_t bits) {
    Value& v = slot(index);
    clear(v);
    v.form = Form::kUniform;
    v.base = bits;
  }
  // A tile for the result, in place of an operand that ends here where sizes allow; becomes `out`'s by
  // set_dense.
  Tile* result_tile(const Instruction& i, int64_t bytes, int operand_bytes);
  void set_dense(int32_t index, Tile* tile) {
    Value& v = slot(index);
    Tile* old = v.tile;
    v.form = Form::kDense;
    v.tile = tile;
    if (old != nullptr) pool_.release(old);
  }
  // The elements, one after the other; made from the lazy form where need be.
  const std::byte* dense(Value& value, Elem elem, const Instruction& shaped, int64_t lanes);
  const std::byte* dense(Value& value, Elem elem, const int32_t* shape, int rank, int64_t lanes);
  void copy(int32_t to, int32_t from);            // shares the elements of a dense value
  void share_elements(int32_t to, int32_t from);  // `from` must have been made dense; `to` is a dense value
  void move(int32_t to, int32_t from, bool kill);
  void run_body(const std::vector<Instruction>& body, int64_t lanes);

  int64_t pc = 0;
  bool running = false;
  std::array<int64_t, 3> program{};
  int64_t linear = 0;
  int64_t back_edges = 0;  // left before the deadline is looked at
  int64_t spins = 0;       // loop iterations since this program last gave way to others
  bool polled = false;     // since the last backward jump an atomic changed nothing, or a volatile read
  bool waits = false;      // it gave way because it polled in vain
  bool waited = false;     // and did so the last time
  bool switches = false;   // it gives way after every atomic
  std::vector<LateAtomic> late;
  bool arrives = false;  // when it goes on
  int stalls = 0;        // how often it gives way before
  LocationId poll_location = -1;
  int64_t stores = 0;
  double flops = 0;                // of the programs so far, but for the prologue's
  int64_t bytes = 0;               // that they read and wrote, each access counted
  int64_t count_left = INT64_MAX;  // while counting: instructions and rows before it gives up
  bool timed_out = false;
  bool wants_yield = false;
  LocationId overflow_location = -1;  // where an address computation of this program wrapped
  ProgramLog log;                     // what this program touched, where that is watched
  LaneLog lane_log;                   // what passes between its lanes, where that is possible
  std::vector<Value> moving;          // scratch of parallel moves
  std::vector<std::byte> scratch;

 private:
  void execute(const std::vector<Instruction>& code);
  const LaunchContext& context_;
  TilePool& pool_;
  std::vector<Value> slots_;
  int64_t lanes_ = 0;
  LocationId prologue_overflow_ = -1;
};

// Integers sign-extended, i1 as 0 or 1, everything else zero-extended: the bits of a kUniform value.
int64_t canonical_bits(const void* element, Elem elem);

}  // namespace nereid::ttir
