#include "nereid/search/program_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "nereid/replay/allowed_ops.h"
#include "nereid/search/python_text.h"

namespace nereid::search {
namespace {

using trace::ValueId;

constexpr size_t kMostData = size_t{1} << 20;  // bytes of one constant

class ProgramWriter {
 public:
  ProgramWriter(const trace::Trace& trace, const std::string& device) : trace_(trace), device_(device) {}

  Result<std::string> run() {
    const trace::Phase* forward = nullptr;
    for (const auto& phase : trace_.phases)
      if (phase.kind == trace::PhaseKind::kForward) forward = &phase;
    if (forward == nullptr) return input_error("the trace holds no forward");
    NEREID_TRY_STATUS(read_forward(*forward));
    NEREID_TRY(const std::string make, make_text(forward->call));
    return head() + make + model_text();
  }

 private:
  const trace::Value& value(ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }
  const trace::Storage& storage_of(ValueId id) const {
    return trace_.storages[static_cast<size_t>(value(id).storage)];
  }

  std::string head() const {
    std::string text = fmt::format("import torch\n\nDEVICE = \"{}\"\n", device_);
    const auto flag = [&](const char* name, const char* python) {
      if (const auto found = trace_.flags.find(name); found != trace_.flags.end())
        text += fmt::format("torch.backends.{} = {}\n", python, found->second != 0 ? "True" : "False");
    };
    flag("matmul.allow_tf32", "cuda.matmul.allow_tf32");
    flag("cudnn.allow_tf32", "cudnn.allow_tf32");
    return text;
  }

  // Indented; empty for what only a trace tells: constants are found by their storages, seeds don't matter.
  Result<std::string> step(const std::string& indent, const trace::Step& step, const NameOf& name_of,
                           const std::function<std::string(ValueId)>& wish) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return input_error("the module launches kernels of its own");
    if (call->op.starts_with("nereid::")) return std::string();
    // The same lists as a replay's: nothing that touches files, processes or raw memory.
    const size_t name = call->op.find("::") + 2;
    if (!call->op.starts_with("aten::") ||
        !replay::is_allowed(std::string_view(call->op).substr(name, call->op.find('.') - name)))
      return input_error("{} is no operator that a baseline runs", call->op);
    NEREID_TRY(const std::string text, call_python(*call, name_of, "DEVICE"));
    return indent + targets_python(call->result, wish) + " = " + text + "\n";
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

  // The steps that make the module and the inputs of that call, as they were traced.
  Result<std::string> make_text(int call) {
    std::string text = "\n\ndef make():\n";
    std::map<ValueId, std::string> names;
    std::map<trace::StorageId, ValueId> made;  // by storage, the first value of it
    const NameOf name_of = [&](ValueId id) -> Result<std::string> { return leaf(id, names, made); };
    size_t count = 0;
    for (const auto& phase : trace_.phases) {
      const bool inputs = phase.kind == trace::PhaseKind::kMakeInputs;
      if (phase.kind == trace::PhaseKind::kForward || (inputs && phase.call != call)) continue;
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

  // A value by what is known of its storage: its data, or somebody who made it.
  Result<std::string> leaf(ValueId id, const std::map<ValueId, std::string>& names,
                           const std::map<trace::StorageId, ValueId>& made) const {
    const auto& v = value(id);
    const auto& storage = storage_of(id);
    const std::string view =
        fmt::format("[{}], [{}], {}", fmt::join(v.sizes, ", "), fmt::join(v.strides, ", "), v.offset);
    if (v.conj || v.neg) return input_error("a tensor is lazily conjugated");
    if (!storage.data.empty()) {
      if (storage.data.size() > kMostData) return input_error("a constant has {} bytes", storage.data.size());
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

  const trace::Trace& trace_;
  const std::string& device_;
  std::vector<ValueId> inputs_, state_;  // that forward needs from outside
  std::string body_;
};

}  // namespace

Result<std::string> program_text(const trace::Trace& trace, const std::string& device) {
  return ProgramWriter(trace, device).run();
}

}  // namespace nereid::search
