#include "nereid/render/subgraph_source.h"

#include <fmt/ranges.h>

#include <map>
#include <set>

#include "nereid/render/python_text.h"

namespace nereid::render {
namespace {

using trace::ValueId;

// Of an operator that takes indices: which arguments are what is indexed, the dimension, and the indices.
struct Indexing {
  size_t of, dim, indices;
  static constexpr size_t kFirst = 100;    // no argument: dimension 0
  static constexpr size_t kClasses = 101;  // dimension 1, or the only one
};
const std::map<std::string_view, Indexing>& indexing_operators() {
  static const std::map<std::string_view, Indexing> kOperators = {
      {"aten::gather", {0, 1, 2}},
      {"aten::index_select", {0, 1, 2}},
      {"aten::embedding", {0, Indexing::kFirst, 1}},
      {"aten::nll_loss_forward", {0, Indexing::kClasses, 1}},
      {"aten::nll_loss2d_forward", {0, Indexing::kClasses, 1}},
      {"aten::cross_entropy_loss", {0, Indexing::kClasses, 1}}};
  return kOperators;
}

bool makes_no_negatives(const std::string& op) {
  const std::string name = op.substr(op.find("::") + 2, op.find('.') - op.find("::") - 2);
  static const std::set<std::string> kNames = {
      "relu", "sigmoid",  "softmax",     "_softmax", "exp",
      "abs",  "sqrt",     "rsqrt",       "square",   "var",
      "std",  "softplus", "hardsigmoid", "norm",     "linalg_vector_norm"};
  return kNames.contains(name);
}

}  // namespace

// What the steps take for an index is below this; nothing where none of them is known to take it for one.
std::optional<int64_t> bound_of(const trace::Trace& trace, const trace::Phase& forward,
                                const std::vector<size_t>& steps, const trace::Value& index) {
  std::optional<int64_t> bound;
  const auto tensor = [&](const trace::Call& call, size_t at) -> const trace::Value* {
    const auto* ref = at < call.args.size() ? std::get_if<trace::TensorRef>(&call.args[at].node) : nullptr;
    return ref == nullptr ? nullptr : &trace.values[static_cast<size_t>(ref->value)];
  };
  for (const size_t step : steps) {
    const auto& call = std::get<trace::Call>(forward.steps[step]);
    const auto found = indexing_operators().find(call.op);
    if (found == indexing_operators().end()) continue;
    const auto& [of, at, indices] = found->second;
    const auto *taken = tensor(call, indices), *from = tensor(call, of);
    if (taken == nullptr || from == nullptr || taken->storage != index.storage) continue;
    const auto rank = static_cast<int64_t>(from->sizes.size());
    int64_t dim = at == Indexing::kClasses && rank > 1 ? 1 : 0;
    if (at < Indexing::kFirst) {
      const auto* number = at < call.args.size() ? std::get_if<int64_t>(&call.args[at].node) : nullptr;
      if (number == nullptr) return std::nullopt;
      dim = *number < 0 ? *number + rank : *number;
    }
    if (dim < 0 || dim >= rank) return std::nullopt;
    const int64_t size = from->sizes[static_cast<size_t>(dim)];
    bound = bound ? std::min(*bound, size) : size;
  }
  return bound;
}

// Random data that an operator meets where this value stood: what is never negative there is not here.
std::string sample_python(const trace::Value& value, bool never_negative, std::optional<int64_t> bound) {
  const std::string sizes = value.sizes.empty() ? "1" : fmt::to_string(fmt::join(value.sizes, ", "));
  if (value.dtype == trace::DType::kBool) return fmt::format("torch.rand({}) < 0.5", sizes);
  if (bound) {
    const std::string cast =
        value.dtype == trace::DType::kI64 ? "" : fmt::format(".to({})", dtype_text(value.dtype));
    return fmt::format("torch.randint(0, {}, ({}{})){}", *bound, sizes, value.sizes.size() < 2 ? "," : "",
                       cast);
  }
  const std::string cast =
      value.dtype == trace::DType::kF32 ? "" : fmt::format(".to({})", dtype_text(value.dtype));
  return fmt::format("torch.{}({}){}", never_negative ? "rand" : "randn", sizes, cast);
}

bool is_contiguous(const trace::Value& value) {
  int64_t stride = 1;
  for (size_t d = value.sizes.size(); d-- > 0; stride *= value.sizes[d])
    if (value.sizes[d] != 1 && value.strides[d] != stride) return false;
  return true;
}

std::vector<ValueId> read_by(const trace::Call& call) {
  std::vector<ValueId> values;
  for (const auto& arg : call.args)
    for (const ValueId id : trace::tensors_in(arg)) values.push_back(id);
  for (const auto& [name, arg] : call.kwargs)
    for (const ValueId id : trace::tensors_in(arg)) values.push_back(id);
  return values;
}

Result<std::string> subgraph_source(const trace::Trace& trace, const trace::Phase& forward,
                                    const std::vector<size_t>& steps, const std::vector<ValueId>& inputs,
                                    const std::vector<ValueId>& outputs) {
  const auto value = [&](ValueId id) -> const trace::Value& { return trace.values[static_cast<size_t>(id)]; };
  std::map<trace::StorageId, const trace::Call*> makers;
  for (const auto& step : forward.steps)
    if (const auto* call = std::get_if<trace::Call>(&step))
      for (const ValueId id : trace::tensors_in(call->result)) makers.emplace(value(id).storage, call);
  std::map<ValueId, std::string> names;
  std::string samples, head;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& v = value(inputs[i]);
    if (v.conj || v.neg) return input_error("an input is conjugate or negative by a flag");
    std::optional<int64_t> bound;
    if (trace::is_integral(v.dtype) && v.dtype != trace::DType::kBool) {
      bound = bound_of(trace, forward, steps, v);
      if (!bound) return input_error("an input has integers whose bounds are unknown");
    }
    names[inputs[i]] = fmt::format("x{}", i);
    const auto maker = makers.find(v.storage);
    const auto& storage = trace.storages[static_cast<size_t>(v.storage)];
    const bool never_negative = maker != makers.end()
                                    ? makes_no_negatives(maker->second->op)
                                    : storage.name.ends_with("var") || storage.name == kPositive;
    samples += fmt::format("        {},\n", sample_python(v, never_negative, bound));
    head += ", " + names[inputs[i]];
  }
  std::string body;
  size_t count = 0;
  for (const size_t step : steps) {
    const auto& call = std::get<trace::Call>(forward.steps[step]);
    NEREID_TRY(
        const std::string text,
        call_python(call, [&](ValueId id) -> Result<std::string> { return names.at(id); }, "x0.device"));
    body += "        " +
            targets_python(call.result, [&](ValueId id) { return names[id] = fmt::format("t{}", count++); }) +
            " = " + text + "\n";
  }
  std::vector<std::string> results;
  for (const ValueId id : outputs) results.push_back(names.at(id));
  return fmt::format(
      "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self{}):\n{}        return {}\n\n\n"
      "def get_inputs():\n    return [\n{}    ]\n\n\ndef get_init_inputs():\n    return []\n",
      head, body, results.size() == 1 ? results[0] : fmt::format("({})", fmt::join(results, ", ")), samples);
}

}  // namespace nereid::render
