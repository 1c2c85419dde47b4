#include "nereid/replay/worker/trial/forward_traits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "nereid/replay/structure.h"
#include "nereid/trace/op_class.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

constexpr std::string_view kComparingOps[] = {
    "eq",      "ne",      "lt",        "le",           "gt",       "ge",
    "isin",    "clamp",   "clamp_min", "clamp_max",    "hardtanh", "threshold",
    "maximum", "minimum", "bucketize", "searchsorted", "heaviside"};
constexpr std::string_view kChoosingOps[] = {"argmax",
                                             "argmin",
                                             "max",
                                             "min",
                                             "topk",
                                             "sort",
                                             "argsort",
                                             "amax",
                                             "amin",
                                             "aminmax",
                                             "kthvalue",
                                             "median",
                                             "msort",
                                             "max_pool1d",
                                             "max_pool2d",
                                             "max_pool3d",
                                             "cummax",
                                             "cummin",
                                             "mode",
                                             "max_pool2d_with_indices",
                                             "adaptive_max_pool2d"};

constexpr std::string_view kMovingOps[] = {"where",
                                           "clone",
                                           "contiguous",
                                           "cat",
                                           "stack",
                                           "index_select",
                                           "gather",
                                           "copy",
                                           "masked_fill",
                                           "copy_",
                                           "abs",
                                           "neg",
                                           "relu",
                                           "flip",
                                           "roll",
                                           "repeat",
                                           "index",
                                           "take_along_dim",
                                           "tril",
                                           "triu",
                                           "expand_copy",
                                           "unfold",
                                           "reflection_pad1d"};

bool name_is_in(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void for_call_numbers(const trace::Call& call, const std::function<void(double)>& take) {
  const auto one = [&](const trace::Arg& arg) {
    if (const auto* number = std::get_if<double>(&arg.node)) take(*number);
    if (const auto* number = std::get_if<int64_t>(&arg.node)) take(static_cast<double>(*number));
  };
  for (const auto& arg : call.args) one(arg);
  for (const auto& [key, arg] : call.kwargs) one(arg);
}

}  // namespace

bool works_on_elements(const trace::Trace& trace) {
  const trace::OpFacts facts(trace);
  return std::ranges::all_of(trace.phases.back().steps, [&](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return false;
    const auto kind = facts.classify_as_work(*call);
    return kind == trace::OpClass::kPointwise || kind <= trace::OpClass::kConcatenation;
  });
}

bool has_approximate_functions(const trace::Trace& trace) {
  constexpr std::string_view kFunctions[] = {"tanh", "gelu", "sigmoid", "silu", "glu",
                                             "mish", "lstm", "gru",     "rnn"};
  for (const auto& phase : trace.phases)
    for (const auto& step : phase.steps)
      if (const auto* call = std::get_if<trace::Call>(&step))
        for (const auto function : kFunctions)
          if (call->op.find(function) != std::string::npos) return true;
  return false;
}

bool has_attention(const trace::Trace& trace) {
  return std::ranges::any_of(trace.phases.back().steps, [](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    return call != nullptr && trace::split_name(call->op).name == "scaled_dot_product_attention";
  });
}

std::vector<double> bounds_of_clamps(const trace::Trace& trace) {
  std::vector<double> bounds;
  for (const auto& phase : trace.phases)
    for (const auto& step : phase.steps) {
      const auto* call = std::get_if<trace::Call>(&step);
      if (call == nullptr || phase.kind != trace::PhaseKind::kForward) continue;
      if (call->op.find("hardtanh") != std::string::npos) bounds.insert(bounds.end(), {-1, 1});
      if (call->op.find("hardsigmoid") != std::string::npos) bounds.push_back(1);
      if (call->op.find("relu6") != std::string::npos) bounds.push_back(6);
      if (call->op.find("hardtanh") == std::string::npos && call->op.find("clamp") == std::string::npos &&
          call->op.find("clip") == std::string::npos)
        continue;
      const auto take = [&](const trace::Arg& arg) {
        if (const auto* number = std::get_if<double>(&arg.node)) bounds.push_back(*number);
        if (const auto* number = std::get_if<int64_t>(&arg.node))
          bounds.push_back(static_cast<double>(*number));
      };
      for (const auto& arg : call->args) take(arg);
      for (const auto& [key, arg] : call->kwargs) take(arg);
    }
  return bounds;
}

std::set<trace::StorageId> searched_in_order(const trace::Trace& trace) {
  std::set<trace::StorageId> found;
  for (const auto& phase : trace.phases)
    for (const auto& step : phase.steps) {
      const auto* call = std::get_if<trace::Call>(&step);
      if (call == nullptr || phase.kind != trace::PhaseKind::kForward) continue;
      const bool buckets = call->op.starts_with("aten::bucketize");
      if (!buckets && !call->op.starts_with("aten::searchsorted")) continue;
      const size_t searched = buckets ? 1 : 0;
      if (call->args.size() <= searched) continue;
      for (const auto value : trace::tensors_in(call->args[searched]))
        found.insert(trace.values[static_cast<size_t>(value)].storage);
    }
  return found;
}

std::vector<double> compared_numbers(const trace::Trace& trace) {
  auto numbers = bounds_of_clamps(trace);
  for (const auto& step : judged_forward(trace)->steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call && std::ranges::find(kComparingOps, trace::split_name(call->op).name) != std::end(kComparingOps))
      for_call_numbers(*call, [&](double number) { numbers.push_back(number); });
  }
  return numbers;
}

bool has_mask_constant(const trace::Trace& trace) {
  constexpr double kLeast = -0x1p45, kMost = -1000;
  bool found = false;
  for (const auto& phase : trace.phases)
    for (const auto& step : phase.steps)
      if (const auto* call = std::get_if<trace::Call>(&step))
        for_call_numbers(*call, [&](double number) { found |= number >= kLeast && number <= kMost; });
  return found;
}

std::set<trace::StorageId> made_with_infinity(const trace::Trace& trace) {
  std::set<trace::StorageId> made;
  for (const auto& step : judged_forward(trace)->steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) continue;
    bool named = false;
    for_call_numbers(*call, [&](double number) { named |= std::isinf(number); });
    if (!named) continue;
    for (const auto id : trace::tensors_in(call->result))
      made.insert(trace.values[static_cast<size_t>(id)].storage);
  }
  return made;
}

bool has_exponentials(const trace::Trace& trace) {
  return std::ranges::any_of(judged_forward(trace)->steps, [](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return true;
    const auto name = trace::split_name(call->op).name;
    const auto begins = [&](std::string_view part, std::string_view longer) {
      return name.starts_with(part) && !name.starts_with(longer);
    };
    const auto holds = [&](std::string_view part) { return name.find(part) != name.npos; };
    return begins("exp", "expand") || begins("log", "logical") || holds("softmax") || holds("attention") ||
           holds("entropy");
  });
}

bool makes_integers_of_floats(const trace::Trace& trace) {
  const auto type = [&](trace::ValueId id) { return trace.values[static_cast<size_t>(id)].dtype; };
  return std::ranges::any_of(judged_forward(trace)->steps, [&](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call || !name_is_in({"_to_copy", "to", "copy", "copy_", "view", "type_as", "floor_divide"},
                             trace::split_name(call->op).name))
      return false;
    const auto made = trace::tensors_in(call->result);
    const bool integers = std::ranges::any_of(made, [&](trace::ValueId id) {
      return trace::is_integral(type(id)) && type(id) != trace::DType::kBool;
    });
    return integers && std::ranges::any_of(call->args, [&](const trace::Arg& arg) {
             return std::ranges::any_of(trace::tensors_in(arg),
                                        [&](trace::ValueId id) { return trace::is_floating(type(id)); });
           });
  });
}

bool decides_by_inputs(const trace::Trace& trace) {
  std::set<trace::StorageId> exact;  // hold numbers of the inputs
  const auto storage = [&](trace::ValueId id) { return trace.values[static_cast<size_t>(id)].storage; };
  const auto is_exact = [&](const trace::Arg& arg) {
    return std::ranges::all_of(trace::tensors_in(arg), [&](trace::ValueId id) {
      return !trace::is_floating(trace.values[static_cast<size_t>(id)].dtype) || exact.contains(storage(id));
    });
  };
  for (const auto id : trace::tensors_in(judged_forward(trace)->inputs)) exact.insert(storage(id));
  bool decides = false;
  for (const auto& step : judged_forward(trace)->steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call) return false;
    const auto name = trace::split_name(call->op).name;
    const bool chooses = std::ranges::find(kComparingOps, name) != std::end(kComparingOps) ||
                         std::ranges::find(kChoosingOps, name) != std::end(kChoosingOps);
    const bool moves = std::ranges::find(kMovingOps, name) != std::end(kMovingOps);
    if (!chooses && !moves) continue;
    const bool of_inputs = std::ranges::all_of(call->args, is_exact);
    if (chooses && !of_inputs) return false;
    decides |= chooses;
    if (of_inputs)
      for (const auto id : trace::tensors_in(call->result)) exact.insert(storage(id));
  }
  return decides;
}

}  // namespace nereid::replay
