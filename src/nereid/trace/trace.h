// The trace: what a module did, once, in a process that had no data. Plain values; docs/trace_format.md is
// its encoding, codec.h reads and writes it.
//
// Ids are indices into the trace's own vectors. A decoded trace has passed `validate`: every id is in range
// and every view is inside its storage, so code that walks a trace need not check again.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nereid::trace {

using StorageId = int32_t;
using ValueId = int32_t;
using KernelId = int32_t;

// Element types, named as in the file: "f32", "bf16", "i64", "bool", "f8e4m3fn", "c64", ...
enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kC32,
  kC64,
  kC128,
};
std::string_view to_string(DType type);
std::optional<DType> dtype_from_string(std::string_view name);
int64_t element_bytes(DType type);
bool is_floating(DType type);  // complex types too
bool is_integral(DType type);  // bool too

enum class Device : uint8_t {
  kCpu,
  kCuda
};  // the trace has one GPU; a replay on the CPU maps both to the CPU

enum class Role : uint8_t { kTemporary, kInput, kParameter, kBuffer, kConstant };

// An allocation.
struct Storage {
  int64_t bytes = 0;
  Role role = Role::kTemporary;
  Device device = Device::kCuda;
  std::string name;  // qualified name for module state ("fc.weight"), the path in the inputs ("0", "1.mask")
                     // for inputs
  std::string
      data;  // kConstant: its bytes. An integer input: the values of this draw, where they are small enough
  bool pinned =
      false;  // host code read `data`: a replay must put these values there after the step that makes them
};

// A strided view of a storage, in elements of its dtype.
struct Value {
  StorageId storage = -1;
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  bool conj = false, neg = false;  // PyTorch's lazy conjugate and negative bits
};
int64_t element_count(const Value& value);
// Bytes [first, last) of the storage that the view spans; {0, 0} for an empty one.
std::pair<int64_t, int64_t> byte_extent(const Value& value);

// An argument or a result: a tree.
struct Arg;
struct None {};
struct TensorRef {
  ValueId value = -1;
};
struct Text {
  std::string text;
};
// A named thing of PyTorch's: kind is "dtype", "device", "layout", "memory_format" or "generator"; or
// "global": a function or a class, "torch.nn.functional:gelu".
struct Named {
  std::string kind, name;
};
struct List {
  std::vector<Arg> items;
  bool tuple = false;
};
struct DictItem;
// Named items: a dictionary, or an object by its fields.
struct Dict {
  enum class Kind : uint8_t {
    kDict,        // keys
    kNamedTuple,  // attributes and places
    kObject,      // attributes: a dataclass, a SimpleNamespace, an instance of a plain class
    kMapping,     // attributes and keys: a dataclass that is a dictionary, too (Hugging Face's ModelOutput)
    kEnum,        // a member: `name` and `value`
  };
  std::vector<DictItem> items;
  Kind kind = Kind::kDict;
  std::string type = {};           // of an object: "module:Name", ":Name" where the traced file defines it
  std::vector<DictItem> computed;  // of kObject: what its properties gave
};
struct Opaque {
  std::string type;
};  // an output that is no data: its Python type's name
struct Arg {
  std::variant<None, bool, int64_t, double, std::complex<double>, Text, TensorRef, Named, List, Dict, Opaque>
      node;
};
// Reads like a pair; a std::pair of the incomplete Arg is more than clang's checks of it can take.
struct DictItem {
  std::string first;
  Arg second;
};
// Every tensor in the tree, in order.
std::vector<ValueId> tensors_in(const Arg& arg);

struct Place {
  std::string file;  // as the user named it, or a library's path below site-packages
  int line = 0;
};

// On which CUDA stream a step is issued, and what is surely done when it begins.
struct StreamOrder {
  int32_t stream = 0;  // 0: the caller's
  int64_t number = 0;  // among the steps of its stream, from 1; 0: from before any other stream was made
  std::vector<std::pair<int32_t, int64_t>> after;  // (stream, its first step that may still run)
};

// A call of an ATen operator (or of one of our own `nereid::` operators, listed in docs/trace_format.md).
struct Call {
  std::string op;  // "aten::add.Tensor"; the default overload is "aten::relu"
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> kwargs;
  Arg result;
  // For an operator whose decomposition depends on the device (linear, attention, recurrent layers, batch
  // norm, dropout): what it became in the tracer, for analysis alone. A replay runs `op`.
  std::vector<std::string> parts;
  Place place;
  StreamOrder order = {};
};

// One argument of a TTIR function.
struct PointerArg {
  ValueId value = -1;
  int64_t offset = 0;
};  // bytes past the value's first element; value -1: null
struct IntArg {
  int64_t value = 0;
};
struct FloatArg {
  double value = 0;
};
struct DescriptorArg {
  ValueId value = -1;
  std::vector<int64_t> shape, strides, block;
  bool nan_padding = false;
};
using LaunchArg = std::variant<PointerArg, IntArg, FloatArg, DescriptorArg>;

// One way to do a launch: an autotuner offers several.
struct Alternative {
  KernelId kernel = -1;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::vector<LaunchArg>
      args;  // one for each parameter of the TTIR function (a descriptor covers its expansion)
  std::vector<Call> before;  // what a configuration's pre_hook does first
  std::string config;        // "BLOCK_M=64, BLOCK_N=64, num_warps=4", empty where nothing was offered
};

// What an autotuner's hooks do where it measures: around a run of each alternative, and after all runs.
struct Tuning {
  struct Run {
    std::vector<Call> before, after;
  };
  std::vector<Run> runs;  // one for each alternative of the launch
  std::vector<Call> reset;
};

struct Launch {
  std::vector<Alternative> alternatives;  // at least one
  Place place;
  int32_t tuner = -1;            // launches with the same number are given the same alternative; -1: of none
  std::optional<Tuning> tuning;  // where this launch is the first of its tuner in a forward that may tune
  StreamOrder order = {};
};

using Step = std::variant<Call, Launch>;

enum class PhaseKind : uint8_t { kModule, kMakeInputs, kInit, kForward };
struct Phase {
  PhaseKind kind{};
  int call = 0;  // which of the forward calls this is, or makes the inputs of: 0, 1, 2
  std::vector<Step> steps;
  Arg inputs;  // kMakeInputs: what get_inputs returned; kForward: what forward was given
  Arg output;  // kForward: what it returned
  std::vector<std::pair<int32_t, int64_t>> joined =
      {};  // as StreamOrder::after, of what the caller does next
};

struct Kernel {
  std::string name, ttir;
  std::string hash;                        // SHA-256 of `ttir` and `options`
  std::map<std::string, int64_t> options;  // num_warps, num_stages, num_ctas, maxnreg, ...; flags as 0 and 1
  std::map<std::string, std::string> text_options;  // the rest, as text
  std::vector<std::pair<std::string, std::string>>
      constants;  // constexpr parameters and their values, as text
  Place place;
  std::string source;  // the Python function, for people
};

struct State {
  std::string name;  // qualified: "encoder.0.weight"
  ValueId value = -1;
  bool parameter = false, persistent = true;
};

struct Trace {
  std::string file;        // the traced file
  std::string class_name;  // Model or ModelNew
  uint64_t draw = 0;       // the seed under which integer data was drawn
  std::vector<Storage> storages;
  std::vector<Value> values;
  std::vector<Kernel> kernels;
  std::vector<Phase>
      phases;  // module, then init and the make_inputs and forward of each call in the order they ran
  std::vector<State> state;  // of the module, after init
  Arg init_inputs;           // what the constructor was given
  // Flags of PyTorch's that change numbers, as the module left them: "matmul.allow_tf32", "cudnn.allow_tf32",
  // "autocast", ...
  std::map<std::string, int64_t> flags;
  std::vector<std::string>
      notes;           // what the tracer found remarkable: a patched function, a stream, a captured graph
  double seconds = 0;  // of tracing
};

}  // namespace nereid::trace
