#include "nereid/render/idiomatic_torch.h"

#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string_view>

#include "nereid/render/python_text.h"
#include "nereid/render/subgraph_source.h"

namespace nereid::render {
namespace {

using trace::Call;
using trace::ValueId;
using Calls = std::vector<std::string_view>;

const Calls& calls_of_cosine_similarity() {
  static const Calls kCalls = {"aten::linalg_vector_norm", "aten::clone",
                               "aten::linalg_vector_norm", "aten::clone",
                               "aten::scalar_tensor",      "aten::clamp_min_.Tensor",
                               "aten::clamp_min_.Tensor",  "aten::div.Tensor",
                               "aten::div.Tensor",         "aten::mul.Tensor",
                               "aten::sum.dim_IntList"};
  return kCalls;
}

const Calls& calls_of_hinge_embedding_loss() {
  static const Calls kCalls = {"aten::zeros_like",  "aten::empty_like", "aten::fill_.Scalar",
                               "aten::sub_.Tensor", "aten::clamp_min_", "aten::ne.Scalar",
                               "aten::where.self",  "aten::ne.Scalar",  "aten::where.self",
                               "aten::add.Tensor",  "aten::mean"};
  return kCalls;
}

bool begins(const trace::Phase& forward, size_t step, const Calls& calls) {
  if (forward.steps.size() - step < calls.size()) return false;
  for (size_t i = 0; i < calls.size(); ++i)
    if (const auto* call = std::get_if<Call>(&forward.steps[step + i]);
        call == nullptr || call->op != calls[i])
      return false;
  return true;
}

std::optional<double> real(const Call& call, size_t at) {
  const auto* number = at < call.args.size() ? std::get_if<double>(&call.args[at].node) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// The numbers of a list argument; empty where it is none, or not there.
std::vector<int64_t> list(const Call& call, size_t at) {
  std::vector<int64_t> numbers;
  const auto* list = at < call.args.size() ? std::get_if<trace::List>(&call.args[at].node) : nullptr;
  if (list == nullptr) return numbers;
  for (const auto& item : list->items) {
    const auto* number = std::get_if<int64_t>(&item.node);
    if (number == nullptr) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

bool flag(const Call& call, size_t at, bool usual) {
  const auto* is = at < call.args.size() ? std::get_if<bool>(&call.args[at].node) : nullptr;
  return is == nullptr ? usual : *is;
}

// What forward says, and what its arguments are.
struct Said {
  std::string before, after;  // the arguments' names
  bool rows = false;          // a row for each index is the same whatever the indices' shape
  bool lines = false;         // of the first argument the last dimension but one, which is 1, is left out
  bool signs = false;         // the second argument is -1 and 1
};

// A pool over pictures of one line each: what PyTorch makes of one over lines.
std::optional<Said> pool_of_lines(const trace::Trace& trace, const Call& call) {
  const auto* x = call.args.empty() ? nullptr : std::get_if<trace::TensorRef>(&call.args[0].node);
  if (call.op != "aten::avg_pool2d" || x == nullptr || call.args.size() > 6) return std::nullopt;
  const auto& sizes = trace.values[static_cast<size_t>(x->value)].sizes;
  const auto window = list(call, 1), stride = list(call, 2), padding = list(call, 3);
  if (sizes.size() < 3 || sizes[sizes.size() - 2] != 1 || window.size() != 2 || window[0] != 1)
    return std::nullopt;
  if (!stride.empty() && (stride.size() != 2 || stride[0] != 1)) return std::nullopt;
  if (!padding.empty() && (padding.size() != 2 || padding[0] != 0)) return std::nullopt;
  std::string more;
  if (!stride.empty() && stride[1] != window[1]) more += fmt::format(", stride={}", stride[1]);
  if (!padding.empty() && padding[1] != 0) more += fmt::format(", padding={}", padding[1]);
  if (flag(call, 4, false)) more += ", ceil_mode=True";
  if (!flag(call, 5, true)) more += ", count_include_pad=False";
  return Said{.before = "F.avg_pool1d(", .after = fmt::format(", {}{})", window[1], more), .lines = true};
}

std::optional<Said> cosine(const Call& norm, const Call& epsilon) {
  const auto dims = list(norm, 2);
  if (real(epsilon, 0) != 1e-8 || dims.size() != 1) return std::nullopt;
  return Said{.before = "F.cosine_similarity(", .after = fmt::format(", dim={})", dims[0])};
}

std::optional<Said> hinge(const Call& fill) {
  const auto margin = real(fill, 1);
  if (!margin) return std::nullopt;
  return Said{.before = "F.hinge_embedding_loss(",
              .after = *margin == 1 ? ")" : fmt::format(", margin={})", float_text(*margin)),
              .signs = true};
}

std::optional<Said> recognize(const trace::Trace& trace, const trace::Phase& forward,
                              const std::vector<size_t>& steps, const std::vector<ValueId>& inputs,
                              const std::vector<ValueId>& outputs) {
  const auto call = [&](size_t i) -> const Call& { return std::get<Call>(forward.steps[steps[i]]); };
  const auto are = [&](const Calls& calls) {
    return steps.size() == calls.size() && steps.back() - steps[0] + 1 == steps.size() &&
           begins(forward, steps[0], calls) && inputs.size() == 2;
  };
  if (are(calls_of_cosine_similarity())) return cosine(call(0), call(4));
  if (are(calls_of_hinge_embedding_loss())) return hinge(call(2));
  if (steps.size() == 2 && call(0).op == "aten::_log_softmax" && call(1).op == "aten::nll_loss_forward" &&
      outputs[0] == trace::tensors_in(call(1).result)[0])
    return Said{.before = "F.cross_entropy(", .after = ")"};
  if (steps.size() != 1) return std::nullopt;
  if (call(0).op == "aten::embedding")
    return Said{.before = "torch.index_select(", .after = ")", .rows = true};
  return pool_of_lines(trace, call(0));
}

// In ATen's words, but for the operator's name.
std::string_view function_of(const Call& call) {
  static const std::map<std::string_view, std::string_view> kWritten = {
      {"aten::where.self", "torch.where"},
      {"aten::masked_fill.Scalar", "torch.masked_fill"},
      {"aten::gather", "torch.gather"},
      {"aten::index_select", "torch.index_select"}};
  const auto found = kWritten.find(call.op);
  return found == kWritten.end() ? "" : found->second;
}

}  // namespace

size_t composite_at(const trace::Phase& forward, size_t step) {
  for (const Calls* calls : {&calls_of_cosine_similarity(), &calls_of_hinge_embedding_loss()})
    if (begins(forward, step, *calls)) return calls->size();
  return 0;
}

std::optional<IdiomaticText> idiomatic_torch(const trace::Trace& trace, const trace::Phase& forward,
                                             const std::vector<size_t>& steps,
                                             const std::vector<ValueId>& inputs,
                                             const std::vector<ValueId>& outputs) {
  if (outputs.size() != 1) return std::nullopt;
  const auto& first = std::get<Call>(forward.steps[steps[0]]);
  const std::string_view function = steps.size() == 1 ? function_of(first) : "";
  const auto said = recognize(trace, forward, steps, inputs, outputs);
  if (!said && function.empty()) return std::nullopt;
  IdiomaticText plain;
  std::map<ValueId, std::string> names;
  std::string list, samples;
  int floats = 0;
  for (const ValueId id : inputs) {
    trace::Value value = trace.values[static_cast<size_t>(id)];
    std::optional<int64_t> bound;
    if (value.dtype == trace::DType::kBool) {
      names[id] = "mask";
    } else if (trace::is_integral(value.dtype)) {
      bound = bound_of(trace, forward, steps, value);
      names[id] = said && !said->rows ? "target" : "idx";
      if (said && said->rows) value.sizes = {trace::element_count(value)};
    } else {
      names[id] = std::vector<const char*>{"x", "b", "c"}[static_cast<size_t>(std::min(floats++, 2))];
    }
    if (value.sizes.empty()) return std::nullopt;
    if (said && said->lines) value.sizes.erase(value.sizes.end() - 2);
    plain.sizes.push_back(value.sizes);
    const bool sign = said && said->signs && plain.sizes.size() == 2;
    if (sign) names[id] = "target", bound = 2, value.dtype = trace::DType::kI64;
    list += (list.empty() ? "" : said && said->rows ? ", 0, " : ", ") + names[id];
    samples += fmt::format("    {} = {}{}\n", names[id], sample_python(value, false, bound),
                           sign ? " * 2.0 - 1.0" : "");
  }
  std::set<std::string> distinct;
  for (const auto& [id, name] : names) distinct.insert(name);
  if (distinct.size() != inputs.size()) return std::nullopt;
  std::string text;
  if (said) {
    text = said->before + list + said->after;
  } else {
    const auto whole =
        call_python(first, [&](ValueId id) -> Result<std::string> { return names.at(id); }, "x.device");
    if (!whole.ok()) return std::nullopt;
    text = std::string(function) + whole->substr(whole->find('('));
  }
  std::string parameters;
  for (const ValueId id : inputs) parameters += ", " + names[id];
  plain.source = fmt::format(
      "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
      "    def forward(self{0}):\n        out = {1}\n        return out\n\ndef get_inputs():\n{2}    return "
      "[{3}]\n\n"
      "def get_init_inputs():\n    return []\n",
      parameters, text, samples, parameters.substr(2));
  return plain;
}

}  // namespace nereid::render
