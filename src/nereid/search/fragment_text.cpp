#include "nereid/search/fragment_text.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <set>

#include "nereid/search/python_text.h"

namespace nereid::search {
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

// What the steps take for an index lies below this; nothing where none of them is known to take it for one.
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
    return fmt::format("torch.randint(0, {}, ({}{})){}", *bound, sizes, value.sizes.size() < 2 ? "," : "", cast);
  }
  const std::string cast =
      value.dtype == trace::DType::kF32 ? "" : fmt::format(".to({})", dtype_text(value.dtype));
  return fmt::format("torch.{}({}){}", never_negative ? "rand" : "randn", sizes, cast);
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
    if (v.conj || v.neg) return input_error("an input is conjugate or negative by a flag");
    std::optional<int64_t> bound;
    if (trace::is_integral(v.dtype) && v.dtype != trace::DType::kBool) {
      bound = bound_of(trace, forward, steps, v);
      if (!bound) return input_error("an input has integers of which nobody knows the bounds");
    }
    names[inputs[i]] = fmt::format("x{}", i);
    const auto maker = makers.find(v.storage);
    const auto& storage = trace.storages[static_cast<size_t>(v.storage)];
    const bool never_negative =
        maker != makers.end() ? makes_no_negatives(maker->second->op) : storage.name.ends_with("var");
    samples += fmt::format("        {},\n", sample_python(v, never_negative, bound));
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

const std::vector<std::string_view>& calls_of_cosine_similarity() {
  static const std::vector<std::string_view> kCalls = {
      "aten::linalg_vector_norm", "aten::clone", "aten::linalg_vector_norm", "aten::clone", "aten::scalar_tensor", "aten::clamp_min_.Tensor",
      "aten::clamp_min_.Tensor", "aten::div.Tensor", "aten::div.Tensor", "aten::mul.Tensor", "aten::sum.dim_IntList"};
  return kCalls;
}

size_t composite_at(const trace::Phase& forward, size_t step) {
  const auto& calls = calls_of_cosine_similarity();
  if (forward.steps.size() - step < calls.size()) return 0;
  for (size_t i = 0; i < calls.size(); ++i)
    if (const auto* call = std::get_if<trace::Call>(&forward.steps[step + i]); call == nullptr || call->op != calls[i]) return 0;
  return calls.size();
}

// The dimension of a cosine similarity by its first call, where it is one with the usual epsilon.
std::optional<int64_t> dimension_of_cosine(const trace::Call& norm, const trace::Call& epsilon) {
  const auto* number = epsilon.args.empty() ? nullptr : std::get_if<double>(&epsilon.args[0].node);
  const auto* list = norm.args.size() < 3 ? nullptr : std::get_if<trace::List>(&norm.args[2].node);
  const auto* dim = list == nullptr || list->items.size() != 1 ? nullptr : std::get_if<int64_t>(&list->items[0].node);
  if (number == nullptr || *number != 1e-8 || dim == nullptr) return std::nullopt;
  return *dim;
}

std::optional<PlainText> plain_text(const trace::Trace& trace, const trace::Phase& forward,
                                    const std::vector<size_t>& steps,
                                    const std::vector<ValueId>& inputs,
                                    const std::vector<ValueId>& outputs) {
  static const std::map<std::string_view, std::string_view> kWritten = {
      {"aten::where.self", "torch.where"},
      {"aten::masked_fill.Scalar", "torch.masked_fill"},
      {"aten::gather", "torch.gather"},
      {"aten::index_select", "torch.index_select"}};
  const auto call = [&](size_t i) -> const trace::Call& {
    return std::get<trace::Call>(forward.steps[steps[i]]);
  };
  const bool classes = steps.size() == 2 && call(0).op == "aten::_log_softmax" && call(1).op == "aten::nll_loss_forward" &&
                       outputs == std::vector<ValueId>{trace::tensors_in(call(1).result)[0]};
  static const std::vector<std::string_view> kHinge = {
      "aten::zeros_like", "aten::empty_like", "aten::fill_.Scalar", "aten::sub_.Tensor", "aten::clamp_min_",
      "aten::ne.Scalar", "aten::where.self", "aten::ne.Scalar", "aten::where.self", "aten::add.Tensor", "aten::mean"};
  bool hinge = steps.size() == kHinge.size() && inputs.size() == 2 && outputs.size() == 1;
  for (size_t i = 0; hinge && i < kHinge.size(); ++i) hinge = call(i).op == kHinge[i];
  const bool rows = steps.size() == 1 && call(0).op == "aten::embedding";
  const auto written = kWritten.find(call(0).op);
  std::optional<int64_t> cosine;  // its dimension
  if (steps.size() == calls_of_cosine_similarity().size() && composite_at(forward, steps[0]) == steps.size() && steps.back() - steps[0] + 1 == steps.size() && inputs.size() == 2)
    cosine = dimension_of_cosine(call(0), call(4));
  if (!classes && !rows && !hinge && !cosine && (steps.size() != 1 || written == kWritten.end())) return std::nullopt;
  PlainText plain;
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
      names[id] = classes ? "target" : "idx";
      // A row for each index is the same whatever the indices' shape.
      if (rows) value.sizes = {trace::element_count(value)};
    } else {
      names[id] = std::vector<const char*>{"x", "b", "c"}[static_cast<size_t>(std::min(floats++, 2))];
    }
    if (value.sizes.empty()) return std::nullopt;
    plain.sizes.push_back(value.sizes);
    const bool sign = hinge && plain.sizes.size() == 2;
    if (sign) names[id] = "target", bound = 2, value.dtype = trace::DType::kI64;
    list += (list.empty() ? "" : ", ") + names[id];
    samples += fmt::format("    {} = {}{}\n", names[id], sample_python(value, false, bound), sign ? " * 2.0 - 1.0" : "");
  }
  std::set<std::string> distinct;
  for (const auto& [id, name] : names) distinct.insert(name);
  if (distinct.size() != inputs.size() || outputs.size() != 1) return std::nullopt;
  std::string text;
  if (classes) {
    text = fmt::format("F.cross_entropy({})", list);
  } else if (hinge) {
    text = fmt::format("F.hinge_embedding_loss({})", list);
  } else if (cosine) {
    text = fmt::format("F.cosine_similarity({}, dim={})", list, *cosine);
  } else if (rows) {
    text = fmt::format("torch.index_select({}, 0, {})", names[inputs[0]], names[inputs[1]]);
  } else {
    const auto whole = call_python(
        call(0), [&](ValueId id) -> Result<std::string> { return names.at(id); }, "x.device");
    if (!whole.ok()) return std::nullopt;
    text = std::string(written->second) + whole->substr(whole->find('('));
  }
  plain.source = fmt::format(
      "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
      "    def forward(self, {}):\n        out = {}\n        return out\n\ndef get_inputs():\n{}    return [{}]\n\n"
      "def get_init_inputs():\n    return []\n",
      list, text, samples, list);
  return plain;
}

}  // namespace nereid::search
