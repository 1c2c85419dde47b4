#include "nereid/compiler/output/guard.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nereid/base/file.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/render/line_breaks.h"
#include "nereid/render/python_text.h"
#include "nereid/trace/dataflow.h"
#include "nereid/trace/notation.h"

namespace nereid::compiler {
namespace {

using trace::Arg;

// Where the text that is copied begins.
constexpr const char* kLine = "# ---- Guard --";
constexpr const char* kDirectLine = "# ---- Direct launches --";
constexpr const char* kGraphLine = "# ---- CUDA graph --";

std::string python_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string last_name(const std::string& type) {
  const size_t at = type.find_last_of(":.");
  return at == type.npos ? type : type.substr(at + 1);
}

// An argument as the guard compares it.
class ExpectedText {
 public:
  explicit ExpectedText(const trace::Trace& trace) : trace_(trace) {}
  explicit ExpectedText(const Assumptions& a)
      : trace_(a.reference), other_(a.other_batch), batches_(a.batches) {}

  std::string tensor(trace::ValueId id) const {
    const trace::Value& value = trace_.values[static_cast<size_t>(id)];
    const bool cpu = trace_.storages[static_cast<size_t>(value.storage)].device == trace::Device::kCpu;
    const trace::Value& other = other_ != nullptr && static_cast<size_t>(id) < other_->values.size()
                                    ? other_->values[static_cast<size_t>(id)]
                                    : value;
    return fmt::format("_Tensor(\"{}\", {}, {}{})", trace::torch_name(value.dtype),
                       numbers(value.sizes, other.sizes), numbers(value.strides, other.strides),
                       cpu ? ", \"cpu\"" : "");
  }

  std::string of(const Arg& arg) const { return std::visit(*this, arg.node); }
  // As what stands for a list of arguments: a dictionary goes by keyword, what is neither a list nor a tuple
  // is the only one.
  std::string arguments(const Arg& arg) const {
    if (std::holds_alternative<trace::List>(arg.node)) return of(arg);
    if (const auto* dict = std::get_if<trace::Dict>(&arg.node);
        dict != nullptr && dict->kind == trace::Dict::Kind::kDict)
      return of(arg);
    return "[" + of(arg) + "]";
  }

  std::string operator()(const trace::None&) const { return "None"; }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(int64_t whole) const { return std::to_string(whole); }
  std::string operator()(double real) const { return render::float_text(real); }
  std::string operator()(const std::complex<double>& z) const { return render::complex_text(z); }
  std::string operator()(const trace::Text& text) const { return python_string(text.text); }
  std::string operator()(const trace::TensorRef& ref) const { return tensor(ref.value); }
  std::string operator()(const trace::Named& named) const {
    if (named.kind == "device") return fmt::format("torch.device(\"{}\")", named.name);
    if (named.kind == "dtype")
      if (const auto type = trace::dtype_from_string(named.name))
        return fmt::format("torch.{}", trace::torch_name(*type));
    if (named.kind == "layout" || named.kind == "memory_format") return "torch." + named.name;
    if (named.kind == "global") return fmt::format("_global({})", python_string(named.name));
    return fmt::format("_Object({})", python_string(named.kind));
  }
  std::string operator()(const trace::List& list) const {
    std::vector<std::string> items;
    for (const auto& item : list.items) items.push_back(of(item));
    if (!list.tuple) return fmt::format("[{}]", fmt::join(items, ", "));
    return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
  }
  std::string operator()(const trace::Dict& dict) const {
    std::vector<std::string> items;
    for (const auto& [name, item] : dict.items) items.push_back(python_string(name) + ": " + of(item));
    const std::string fields = fmt::format("{{{}}}", fmt::join(items, ", "));
    return dict.kind == trace::Dict::Kind::kDict
               ? fields
               : fmt::format("_Object({}, {})", python_string(last_name(dict.type)), fields);
  }
  std::string operator()(const trace::Opaque& opaque) const {
    return fmt::format("_Object({})", python_string(opaque.type));
  }

 private:
  // "((1, 0), 24)": what depends on the batch as (a, b) of a * batch + b.
  std::string numbers(const std::vector<int64_t>& here, const std::vector<int64_t>& there) const {
    std::vector<std::string> items;
    for (size_t d = 0; d < here.size(); ++d) {
      const int64_t run = batches_.first - batches_.second, rise = d < there.size() ? here[d] - there[d] : 0;
      if (rise == 0 || run == 0)
        items.push_back(std::to_string(here[d]));
      else
        items.push_back(fmt::format("({}, {})", rise / run, here[d] - rise / run * batches_.first));
    }
    return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
  }

  const trace::Trace& trace_;
  const trace::Trace* other_ = nullptr;
  std::pair<int64_t, int64_t> batches_ = {};
};

// "float32[32, 64]" and values: the arguments for a person. A size that differs from `other`'s is "batch", or
// "batch + 1".
std::string argument_text(const Assumptions& a, const Arg& arg) {
  const trace::Trace& trace = a.reference;
  if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node)) {
    const trace::Value& value = trace.values[static_cast<size_t>(ref->value)];
    std::vector<std::string> sizes;
    for (size_t d = 0; d < value.sizes.size(); ++d) {
      const int64_t size = value.sizes[d];
      const bool other =
          a.other_batch != nullptr && a.other_batch->values[static_cast<size_t>(ref->value)].sizes[d] != size;
      sizes.push_back(other ? (size == a.batches.first ? "batch" : "...") : std::to_string(size));
    }
    std::vector<int64_t> row_major(value.sizes.size());
    int64_t stride = 1;
    for (size_t d = value.sizes.size(); d-- > 0; stride *= value.sizes[d]) row_major[d] = stride;
    const std::string strides =
        value.strides == row_major ? "" : fmt::format(" with strides {}", render::tuple_text(value.strides));
    return fmt::format("{}[{}]{}", trace::torch_name(value.dtype), fmt::join(sizes, ", "), strides);
  }
  const auto items = [&](const auto& all, const auto& one) {
    std::string text;
    for (const auto& item : all) text += (text.empty() ? "" : ", ") + one(item);
    return text;
  };
  if (const auto* list = std::get_if<trace::List>(&arg.node))
    return "(" + items(list->items, [&](const Arg& item) { return argument_text(a, item); }) + ")";
  if (const auto* dict = std::get_if<trace::Dict>(&arg.node))
    return fmt::format("{}({})", last_name(dict->type), items(dict->items, [&](const trace::DictItem& item) {
                         return item.first + "=" + argument_text(a, item.second);
                       }));
  return ExpectedText(trace).of(arg);
}

const trace::State* state_named(const trace::Trace& trace, const std::string& name) {
  const auto found = std::ranges::find(trace.state, name, &trace::State::name);
  return found == trace.state.end() ? nullptr : &*found;
}

bool writes_to_arguments(const trace::Trace& trace) {
  const auto all = [](const trace::Kernel&) { return std::vector<trace::ParameterUse>(); };
  for (const auto& step : trace::follow(trace, trace.phases.back(), all).accesses)
    for (const trace::Access& write : step.writes)
      if (trace.storages[static_cast<size_t>(write.storage)].role != trace::Role::kTemporary) return true;
  return false;
}

// A fallback computes with the candidate's parameters and buffers, under the reference's names.
Status holds_state_of(const trace::Trace& candidate, const trace::Trace& reference) {
  for (const trace::State& state : reference.state) {
    const trace::Value& want = reference.values[static_cast<size_t>(state.value)];
    const trace::State* held = state_named(candidate, state.name);
    const trace::Value* got = held == nullptr ? nullptr : &candidate.values[static_cast<size_t>(held->value)];
    if (got == nullptr || got->sizes != want.sizes || got->dtype != want.dtype)
      return input_error(
          "--fallback: the reference's {} {}[{}] is not among the parameters and buffers of ModelNew: leave "
          "out "
          "--fallback, or name other --proposers (the compiler keeps them)",
          state.name, trace::torch_name(want.dtype), fmt::join(want.sizes, ", "));
  }
  return ok_status();
}

}  // namespace

Result<Guard> Guard::read(const std::filesystem::path& package) {
  const auto below = [&](const char* name, const char* line) -> Result<std::string> {
    NEREID_TRY(const std::string file, read_file(package / name));
    const size_t at = file.find(line);
    if (at == file.npos) return our_error("{}: there is no line '{}'", (package / name).string(), line);
    return file.substr(at);
  };
  NEREID_TRY(std::string text, below("_written/guard.py", kLine));
  NEREID_TRY(std::string direct, below("_written/direct.py", kDirectLine));
  NEREID_TRY(std::string graph, below("_written/graphed.py", kGraphLine));
  return Guard(std::move(text), std::move(direct), std::move(graph));
}

Result<std::string> Guard::around(const std::string& source, const Assumptions& a) const {
  const ExpectedText given(a), held(a.candidate);
  std::string text = source + (source.ends_with('\n') ? "" : "\n") + "\n\n";
  if (a.graph != Assumptions::Graph::kNone)
    text += fmt::format("{}\n\n_graphed(ModelNew, fresh={})\n\n\n", graph_,
                        a.graph == Assumptions::Graph::kFresh ? "True" : "False");
  text += text_ + "\n\n";
  if (!a.fallback.empty()) {
    NEREID_TRY_STATUS(holds_state_of(a.candidate, a.reference));
    NEREID_TRY(const std::string body, as_function(a.fallback, "_reference", a.reference.class_name));
    text += body + "\n\n";
  }
  const bool direct = a.direct && source.find("@triton.jit") != std::string::npos;
  if (direct) text += direct_ + "\n\n";
  std::string call = "_guard(\n    ModelNew,\n    {\n";
  call += fmt::format("        \"inputs\": {},\n", given.arguments(a.reference.phases.back().inputs));
  call += fmt::format("        \"constructor\": {},\n", given.arguments(a.reference.init_inputs));
  if (a.state_known) {
    call += "        \"state\": {";
    for (const trace::State& state : a.candidate.state)
      call += fmt::format("\n            {}: {},", python_string(state.name), held.tensor(state.value));
    call += a.candidate.state.empty() ? "},\n" : "\n        },\n";
  } else {
    call += "        \"state\": None,  # as the constructor makes it\n";
  }
  call += fmt::format("        \"modes\": {},  # whether train() and eval() make a difference\n",
                      a.modes ? "True" : "False");
  if (!a.fallback.empty())
    call += fmt::format("        \"writes\": {},  # whether forward writes to its arguments or its state\n",
                        writes_to_arguments(a.reference) ? "True" : "False");
  if (a.other_batch != nullptr)
    call += fmt::format("        \"batch\": ({}, {}),  # the least and the largest\n", a.passing.first,
                        a.passing.second);
  call += "    },\n";
  if (!a.fallback.empty()) call += "    _reference,\n";
  if (direct) call += "    direct=_direct,\n";
  return text + render::with_line_breaks(call + ")\n");
}

std::string assumptions_text(const Assumptions& a) {
  std::string text = fmt::format("Inference only. For forward{} on one CUDA device",
                                 argument_text(a, a.reference.phases.back().inputs));
  text += fmt::format(", built as {}{}", "ModelNew", argument_text(a, a.reference.init_inputs));
  if (a.other_batch != nullptr)
    text += fmt::format(", for any batch from {} to {}", a.passing.first, a.passing.second);
  text += a.modes ? ", in the mode that it is built in: train() and eval() make a difference.\n"
                  : ", in any mode.\n";
  std::map<std::string, int> types;
  for (const trace::State& state : a.state_known ? a.candidate.state : std::vector<trace::State>())
    ++types[std::string(trace::torch_name(a.candidate.values[static_cast<size_t>(state.value)].dtype))];
  std::vector<std::string> counts;
  for (const auto& [type, count] : types) counts.push_back(fmt::format("{} of {}", count, type));
  if (!counts.empty()) text += fmt::format("Parameters and buffers: {}.\n", fmt::join(counts, ", "));
  return text + (a.fallback.empty()
                     ? "Any other call raises NotVerified.\n"
                     : "Any other call, on a CPU or with gradients too, is done by the original forward.\n");
}

std::string in_other_mode(const std::string& source, const std::string& class_name) {
  return source + fmt::format(R"(

_nereid_built = {0}.__init__
def _nereid_in_other_mode(self, *args, **kwargs):
    _nereid_built(self, *args, **kwargs)
    if hasattr(self, "train"):
        self.train(not self.training)
{0}.__init__ = _nereid_in_other_mode
)",
                              class_name);
}

}  // namespace nereid::compiler
