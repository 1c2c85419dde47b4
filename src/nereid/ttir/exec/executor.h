// Runs Triton's TTIR natively on the CPU, with or without the sanitizer.
//
//   auto kernel = ttir::Kernel::load(text);              // parse, verify, prepare; once per kernel
//   auto report = kernel->run(launch, buffers, options);  // as often as wanted
//
// A kernel is immutable after load and may be run from several threads at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/ttir/analysis/data_paths.h"

namespace nereid {
class ThreadPool;
}

namespace nereid::ttir {

// One allocation that a launch may touch. Pointers are (buffer, byte offset) pairs; an address is never a
// number that a kernel could forge.
struct Buffer {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  std::string name;           // for findings: "input x", "parameter fc.weight", "temporary 12"
  int64_t element_bytes = 1;  // so that a finding can give an element's index
  uint8_t* written =
      nullptr;  // one bit a byte (LSB first), set where written; null: all of it counts as written
};

struct Pointer {
  int buffer = -1;     // index into the launch's buffers; -1 is the null pointer
  int64_t offset = 0;  // bytes from the buffer's start
};

struct Scalar {
  uint64_t bits = 0;  // the value in the parameter's own type, zero-extended (an f32 as its 32 bits)
};

// A tensor descriptor made on the host (`TensorDescriptor`).
struct Descriptor {
  Pointer base;
  std::vector<int64_t> shape, strides;  // in elements
  bool nan_padding = false;
};

using Argument = std::variant<Pointer, Scalar, Descriptor>;

struct Launch {
  std::array<int64_t, 3> grid{1, 1, 1};
  std::vector<Argument> arguments;  // one for each parameter of the TTIR function; a Descriptor also covers
                                    // the shape and stride parameters that Triton lists after it
};

enum class FindingKind {
  kOutOfBounds,        // a load, store or atomic outside its buffer
  kUninitializedRead,  // unwritten bytes
  kRace,               // two programs touch the same bytes, one of them writes, not both atomically
  kMisaligned,         // an address not divisible by the element's size
  kOffsetOverflow,     // integer overflow in an address computation
  kDivisionByZero,
  kAssertion,       // tl.device_assert
  kDeadlock,        // programs wait for one that cannot begin, or for what none does
  kMissingBarrier,  // lanes of one program pass data through memory without a barrier
  kOrderDependent,  // what comes out depends on the order of the programs
};
std::string_view to_string(FindingKind kind);

struct Finding {
  FindingKind kind{};
  std::string kernel, file;
  int line = 0;
  std::array<int64_t, 3> program{};
  std::string buffer;    // the Buffer's name
  int64_t index = 0;     // element index from the buffer's start; negative or past the end when out of bounds
  std::string sentence;  // all of the above for a person
};

struct RunOptions {
  bool sanitize = true;
  // Programs begin in an order of no meaning, one at a time on one thread, and switch at atomics.
  bool shuffled = false;
  int64_t resident = 0;                   // how many programs the GPU surely holds at once; 0: all
  ThreadPool* pool = nullptr;             // null: on the calling thread alone
  Deadline deadline = Deadline::never();  // checked at loop back edges and between programs
  int max_findings = 16;                  // the first of each (kind, line, buffer); the count goes on
};

struct Report {
  std::vector<Finding> findings;  // sorted by program, deterministic for any number of threads
  int64_t finding_count = 0;
  bool timed_out = false;
  bool ok() const { return finding_count == 0 && !timed_out; }
};

// What a launch moves and computes, found from the kernel's text and the launch's numbers, without data: time
// does not grow with the grid.
struct Cost {
  double flops = 0;       // multiply and add counted as two; transcendental functions as one
  double bytes_read = 0;  // distinct bytes of the arguments' storages, as far as known
  double bytes_written = 0;
  bool exact = true;    // false where a trip count or a mask depends on loaded data, or where it is sampled
  std::string unknown;  // why the analysis says nothing and a sample of programs was counted; else empty
  double error =
      0;  // relative error bound: of bytes where an address has no closed form, of FLOPs in a sample
};

// What programs of a launch did on data. Bytes are those of each access, not distinct ones.
struct Work {
  double flops = 0, bytes = 0;
};

struct Parameter {
  std::string name;  // from the location, else "arg3"
  std::string type;  // as in the text: "!tt.ptr<f32>", "i32", "!tt.tensordesc<tensor<64x64xf16>>"
  // Of a pointer or descriptor: whether a load or an atomic (a store or an atomic) may reach memory through
  // it, followed through addptr, splat, loops and calls. True where it is unknown, so that data flow errs
  // on the safe side.
  bool read = true, written = true;
  bool chosen = false;  // what is written through it may in each place go through another parameter
};

class Kernel {
 public:
  // The text is hostile. An operation or type we do not know is an error that begins "Unsupported: " and
  // names it and its line; malformed text is an error with line and column.
  static Result<Kernel> load(std::string_view text);

  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  const std::string& name() const;
  const std::vector<Parameter>& parameters() const;

  // Facts for the rules of a verdict.
  bool uses_int_to_ptr() const;
  std::vector<std::string> inline_assembly() const;  // the distinct assembly strings
  bool branches_on_float_data()
      const;  // an scf.if/while or cf.cond_br that depends on loaded floating-point data
  // Holds an atomic or a volatile load: only then may the order of its programs matter without a race.
  bool communicates() const;
  bool multiplies() const;       // holds a dot, whose operands take shared memory
  bool moves_by_data() const;    // which bytes it touches, or how often, may depend on what it loads
  DataPaths data_paths() const;  // worked out anew at each call

  // An error (blamed on the input) where the launch does not fit the kernel; findings are in the report, not
  // errors.
  Result<Report> run(const Launch& launch, const std::vector<Buffer>& buffers,
                     const RunOptions& options = {}) const;

  // `buffer_bytes`: the sizes of the launch's buffers, by index, which bound what is touched there; 0 or
  // missing: unknown.
  Cost cost(const Launch& launch, const std::vector<int64_t>& buffer_bytes = {}) const;
  // What the launch does on this data, by running it without the sanitizer, on the calling thread, on
  // `buffers`, which it writes: all of its programs, or `max_programs` picked evenly that stand for all.
  // Where programs wait for others that are not run, or time is over, what they did until then.
  Result<Work> count(const Launch& launch, const std::vector<Buffer>& buffers, int64_t max_programs,
                     Deadline deadline) const;
  // As `cost`, by running every program without its tensors: slow, and what `cost` is tested against.
  Cost walked_cost(const Launch& launch) const;

 private:
  struct Program;
  explicit Kernel(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace nereid::ttir
