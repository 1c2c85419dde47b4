#include "nereid/search/fragment_text.h"

#include <fmt/ranges.h>

#include <map>
#include <set>

#include "nereid/search/python_text.h"

namespace nereid::search {
namespace {

using trace::ValueId;

// Random data that an operator meets where this value stood: what is never negative there is not here.
std::string sample_python(const trace::Value& value, bool never_negative) {
  int64_t extent = 1, stride = 1;
  bool contiguous = true;
  for (size_t d = value.sizes.size(); d-- > 0; stride *= value.sizes[d]) {
    extent += (value.sizes[d] - 1) * value.strides[d];
    contiguous = contiguous && (value.sizes[d] == 1 || value.strides[d] == stride);
  }
  const char* draw = never_negative ? "rand" : "randn";
  const std::string cast = value.dtype == trace::DType::kF32 ? "" : fmt::format(".to({})", dtype_text(value.dtype));
  if (contiguous && !value.sizes.empty())
    return fmt::format("torch.{}({}){}", draw, fmt::join(value.sizes, ", "), cast);
  return fmt::format("torch.as_strided(torch.{}({}){}, [{}], [{}])", draw, extent, cast,
                     fmt::join(value.sizes, ", "), fmt::join(value.strides, ", "));
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

std::vector<ValueId> read_by(const trace::Call& call) {
  std::vector<ValueId> values;
  for (const auto& arg : call.args)
    for (const ValueId id : trace::tensors_in(arg)) values.push_back(id);
  for (const auto& [name, arg] : call.kwargs)
    for (const ValueId id : trace::tensors_in(arg)) values.push_back(id);
  return values;
}

Result<std::string> fragment_text(const trace::Trace& trace, const trace::Phase& forward,
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
    if (!trace::is_floating(v.dtype) || v.conj || v.neg)
      return input_error("an input is no plain floating-point tensor");
    names[inputs[i]] = fmt::format("x{}", i);
    const auto maker = makers.find(v.storage);
    const auto& storage = trace.storages[static_cast<size_t>(v.storage)];
    const bool never_negative =
        maker != makers.end() ? makes_no_negatives(maker->second->op) : storage.name.ends_with("var");
    samples += fmt::format("        {},\n", sample_python(v, never_negative));
    head += ", " + names[inputs[i]];
  }
  std::string body;
  size_t count = 0;
  for (const size_t step : steps) {
    const auto& call = std::get<trace::Call>(forward.steps[step]);
    NEREID_TRY(const std::string text,
               call_python(
                   call, [&](ValueId id) -> Result<std::string> { return names.at(id); }, "x0.device"));
    body += "        " +
            targets_python(call.result,
                           [&](ValueId id) { return names[id] = fmt::format("t{}", count++); }) +
            " = " + text + "\n";
  }
  std::vector<std::string> results;
  for (const ValueId id : outputs) results.push_back(names.at(id));
  return fmt::format(
      "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self{}):\n{}        return {}\n\n\n"
      "def get_inputs():\n    return [\n{}    ]\n\n\ndef get_init_inputs():\n    return []\n",
      head, body, results.size() == 1 ? results[0] : fmt::format("({})", fmt::join(results, ", ")), samples);
}

}  // namespace nereid::search
