#include "nereid/render/program_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/render/python_text.h"
#include "nereid/trace/allowed_ops.h"

namespace nereid::render {
namespace {

using trace::ValueId;

constexpr size_t kMaxData = size_t{16} << 20;  // bytes of one constant

class ProgramWriter {
 public:
  ProgramWriter(const trace::Trace& trace, const std::string& device) : trace_(trace), device_(device) {}

  Result<ProgramText> run(const trace::Trace* reference) {
    NEREID_TRY(const trace::Phase* forward, last_forward());
    NEREID_TRY_STATUS(read_forward(*forward));
    std::string given;
    if (reference != nullptr) {
      given_ = trace::tensors_in(forward->inputs);
      NEREID_TRY(given, ProgramWriter(*reference, device_).inputs_text(given_.size()));
    }
    NEREID_TRY(const std::string make, make_text("make", forward->call, true));
    ProgramText program{.text = head() + kernels_text() + given + make + model_text()};
    for (const auto& [hash, kernel] : kernels_)
      program.kernels[hash] = static_cast<int>(kernel.kernel->constants.size());
    return program;
  }

 private:
  Result<const trace::Phase*> last_forward() const {
    const trace::Phase* forward = nullptr;
    for (const auto& phase : trace_.phases)
      if (phase.kind == trace::PhaseKind::kForward) forward = &phase;
    if (forward == nullptr) return input_error("the trace holds no forward");
    return forward;
  }

  // A function that gives what forward is called with, tensor by tensor.
  Result<std::string> inputs_text(size_t count) {
    NEREID_TRY(const trace::Phase* forward, last_forward());
    inputs_ = trace::tensors_in(forward->inputs);
    if (inputs_.size() != count)
      return input_error("the reference is called with {} tensors, the candidate with {}", inputs_.size(),
                         count);
    return make_text("make_inputs", forward->call, false);
  }

  const trace::Value& value(ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }
  const trace::Storage& storage_of(ValueId id) const {
    return trace_.storages[static_cast<size_t>(value(id).storage)];
  }

  std::string head() const {
    std::string text = "import torch\n";
    if (!kernels_.empty())
      text += "import triton\nimport triton.language as tl\nfrom nereid._timing import called_kernels\n";
    text += fmt::format("\nDEVICE = \"{}\"\n", device_);
    const auto flag = [&](const char* name, const char* python) {
      if (const auto found = trace_.flags.find(name); found != trace_.flags.end())
        text += fmt::format("torch.backends.{} = {}\n", python, found->second != 0 ? "True" : "False");
    };
    flag("matmul.allow_tf32", "cuda.matmul.allow_tf32");
    flag("cudnn.allow_tf32", "cudnn.allow_tf32");
    return text;
  }

  // Indented; empty for what only a trace says: constants are found by their storages, seeds don't matter.
  Result<std::string> step(const std::string& indent, const trace::Step& step, const NameOf& name_of,
                           const std::function<std::string(ValueId)>& wish) {
    if (const auto* launch = std::get_if<trace::Launch>(&step))
      return launch_text(indent, *launch, name_of, wish);
    return call_text(indent, std::get<trace::Call>(step), name_of, wish);
  }

  Result<std::string> call_text(const std::string& indent, const trace::Call& call, const NameOf& name_of,
                                const std::function<std::string(ValueId)>& wish) {
    if (call.op.starts_with("nereid::")) return std::string();
    // The same lists as a replay's: nothing that touches files, processes or raw memory.
    const size_t name = call.op.find("::") + 2;
    if (!call.op.starts_with("aten::") ||
        !trace::is_allowed(std::string_view(call.op).substr(name, call.op.find('.') - name)))
      return input_error("{} is not an operator that a called program runs", call.op);
    NEREID_TRY(const std::string text, call_python(call, name_of, "DEVICE"));
    return indent + targets_python(call.result, wish) + " = " + text + "\n";
  }

  // Where an autotuner offered several ways, the fastest of them, found at the first call as it would be.
  Result<std::string> launch_text(const std::string& indent, const trace::Launch& launch,
                                  const NameOf& name_of, const std::function<std::string(ValueId)>& wish) {
    if (device_ == "cpu") return input_error("it launches kernels, and there is no GPU");
    if (launch.alternatives.size() == 1) {
      std::string text;
      for (const auto& call : launch.alternatives[0].before) {
        NEREID_TRY(const std::string before, call_text(indent, call, name_of, wish));
        text += before;
      }
      NEREID_TRY(const std::string launched, alternative_text(launch.alternatives[0], name_of));
      return text + indent + launched + "\n";
    }
    std::string text = indent + fmt::format("called_kernels.fastest({}", choices_++);
    for (const auto& alternative : launch.alternatives) {
      if (!alternative.before.empty()) return input_error("a configuration of a launch has a hook");
      NEREID_TRY(const std::string launched, alternative_text(alternative, name_of));
      text += ", lambda: " + launched;
    }
    return text + ")\n";
  }

  // "kernel0[(128, 1, 1)](a0, t1, 1024, C0=64, num_warps=4, num_stages=3)", as Triton's users write it.
  Result<std::string> alternative_text(const trace::Alternative& alternative, const NameOf& name_of) {
    const auto& kernel = trace_.kernels[static_cast<size_t>(alternative.kernel)];
    const auto& known =
        kernels_.try_emplace(kernel.hash, Kernel{kernels_.size(), &kernel, alternative.args.size()})
            .first->second;
    if (known.arguments != alternative.args.size())
      return input_error("kernel {} is launched with {} and with {} arguments", kernel.name, known.arguments,
                         alternative.args.size());
    std::string text = fmt::format("kernel{}[({})](", known.number, fmt::join(alternative.grid, ", "));
    for (const auto& arg : alternative.args) {
      if (const auto* pointer = std::get_if<trace::PointerArg>(&arg)) {
        if (pointer->value < 0 || pointer->offset != 0)
          return input_error("kernel {} is given an address that is not a tensor's", kernel.name);
        NEREID_TRY(const std::string name, name_of(pointer->value));
        text += name + ", ";
      } else if (const auto* integer = std::get_if<trace::IntArg>(&arg)) {
        text += fmt::format("{}, ", integer->value);
      } else if (const auto* number = std::get_if<trace::FloatArg>(&arg)) {
        text += float_text(number->value) + ", ";
      } else {
        return input_error("kernel {} is given a tensor descriptor", kernel.name);
      }
    }
    for (size_t i = 0; i < kernel.constants.size(); ++i)
      text += fmt::format("C{}={}, ", i, constant_text(kernel.constants[i].second));
    const auto option = [&](const char* name) {
      if (const auto found = kernel.options.find(name); found != kernel.options.end())
        text += fmt::format("{}={}, ", name, found->second);
    };
    option("num_warps"), option("num_stages");
    return text + ")";
  }

  // What Triton looks its machine code up by: a number as it is, whatever else as text.
  static std::string constant_text(const std::string& value) {
    const bool number = !value.empty() && value.size() < 20 &&
                        value.find_first_not_of("0123456789", value[0] == '-' ? 1 : 0) == value.npos &&
                        value.back() != '-' && (value[value[0] == '-' ? 1 : 0] != '0' || value.size() == 1);
    return number ? value : Json(value).dump(-1, ' ', true, Json::error_handler_t::replace);
  }

  // A function of each kernel's parameters, whose machine code is there already: its body is never compiled.
  std::string kernels_text() const {
    std::string text;
    for (const auto& [hash, kernel] : kernels_) {
      std::string parameters;
      for (size_t i = 0; i < kernel.arguments; ++i) parameters += fmt::format("p{}, ", i);
      for (size_t i = 0; i < kernel.kernel->constants.size(); ++i)
        parameters += fmt::format("C{}: tl.constexpr, ", i);
      text += fmt::format(
          "\n\n@triton.jit\ndef kernel{0}({1}):\n    pass\n\n\ncalled_kernels.bind(kernel{0}, \"{2}\")\n",
          kernel.number, parameters, hash);
    }
    return text;
  }

  // What forward needs from outside becomes an argument or a part of the module's state.
  Status read_forward(const trace::Phase& forward) {
    std::map<ValueId, std::string> names;
    std::set<trace::StorageId> given;
    for (const ValueId id : trace::tensors_in(forward.inputs)) given.insert(value(id).storage);
    const NameOf name_of = [&](ValueId id) -> Result<std::string> {
      if (const auto found = names.find(id); found != names.end()) return found->second;
      auto& list = given.contains(value(id).storage) ? inputs_ : state_;
      list.push_back(id);
      return names[id] = fmt::format("{}{}", &list == &inputs_ ? "a" : "self.w", list.size() - 1);
    };
    size_t count = 0;
    for (const auto& one : forward.steps) {
      NEREID_TRY(const std::string text, step("        ", one, name_of, [&](ValueId id) {
                   return names[id] = fmt::format("t{}", count++);
                 }));
      body_ += text;
    }
    NEREID_TRY(const std::string output, tree_python(forward.output, name_of, "DEVICE"));
    body_ += "        return " + output + "\n";
    return ok_status();
  }

  std::string model_text() const {
    std::string arguments;
    for (size_t i = 0; i < inputs_.size(); ++i) arguments += fmt::format(", a{}", i);
    return fmt::format(
        "\n\nclass Model(torch.nn.Module):\n    def __init__(self, state):\n        super().__init__()\n"
        "        for i, tensor in enumerate(state):\n            self.register_buffer(f\"w{{i}}\", "
        "tensor)\n\n"
        "    def forward(self{}):\n{}",
        arguments, body_);
  }

  // The steps that make the inputs of that call, and the module, as they were traced.
  Result<std::string> make_text(const char* name, int call, bool module) {
    std::string text = fmt::format("\n\ndef {}():\n", name);
    std::map<ValueId, std::string> names;
    std::map<trace::StorageId, ValueId> made;  // by storage, the first value of it
    if (!given_.empty()) text += "    given, _ = make_inputs()\n";
    for (size_t i = 0; i < given_.size(); ++i) {
      names[given_[i]] = fmt::format("given[{}]", i);
      made.try_emplace(value(given_[i]).storage, given_[i]);
    }
    const NameOf name_of = [&](ValueId id) -> Result<std::string> { return leaf(id, names, made); };
    size_t count = 0;
    for (const auto& phase : trace_.phases) {
      const bool inputs = phase.kind == trace::PhaseKind::kMakeInputs;
      if (phase.kind == trace::PhaseKind::kForward || (inputs && phase.call != call)) continue;
      if (phase.kind == trace::PhaseKind::kInit && !module) continue;
      for (const auto& one : phase.steps) {
        NEREID_TRY(const std::string line, step("    ", one, name_of, [&](ValueId id) {
                     made.try_emplace(value(id).storage, id);
                     return names[id] = fmt::format("t{}", count++);
                   }));
        text += line;
      }
    }
    text += "    return [";
    for (const auto* list : {&inputs_, &state_}) {
      for (const ValueId id : *list) {
        NEREID_TRY(const std::string name, leaf(id, names, made));
        text += name + ", ";
      }
      text += list == &inputs_ ? "], [" : "]\n";
    }
    return text;
  }

  // A value by what is known of its storage: its data, or the step that made it.
  Result<std::string> leaf(ValueId id, const std::map<ValueId, std::string>& names,
                           const std::map<trace::StorageId, ValueId>& made) const {
    const auto& v = value(id);
    const auto& storage = storage_of(id);
    const std::string view =
        fmt::format("[{}], [{}], {}", fmt::join(v.sizes, ", "), fmt::join(v.strides, ", "), v.offset);
    if (v.conj || v.neg) return input_error("a tensor is lazily conjugated");
    if (!storage.data.empty()) {
      if (storage.data.size() > kMaxData) return input_error("a constant has {} bytes", storage.data.size());
      std::string hex;
      for (const char c : storage.data) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return fmt::format(
          "torch.frombuffer(bytearray.fromhex(\"{}\"), dtype=torch.uint8).view({}).to({}).as_strided({})",
          hex, dtype_text(v.dtype), storage.device == trace::Device::kCpu ? "\"cpu\"" : "DEVICE", view);
    }
    if (const auto found = names.find(id); found != names.end()) return found->second;
    const auto maker = made.find(v.storage);
    if (maker == made.end() || value(maker->second).dtype != v.dtype)
      return input_error("a tensor of forward was made by no step");
    return fmt::format("{}.as_strided({})", names.at(maker->second), view);
  }

  struct Kernel {
    size_t number;
    const trace::Kernel* kernel;
    size_t arguments;
  };

  const trace::Trace& trace_;
  const std::string& device_;
  std::map<std::string, Kernel> kernels_;  // by hash
  int choices_ = 0;
  std::vector<ValueId> inputs_, state_;  // that forward needs from outside
  std::vector<ValueId> given_;           // of a candidate: what its reference makes
  std::string body_;
};

}  // namespace

Result<ProgramText> program_text(const trace::Trace& trace, const std::string& device,
                                 const trace::Trace* reference) {
  return ProgramWriter(trace, device).run(reference);
}

}  // namespace nereid::render
