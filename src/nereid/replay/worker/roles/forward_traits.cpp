#include "nereid/replay/worker/roles/forward_traits.h"

#include <string>
#include <string_view>

namespace nereid::replay {

bool goes_near_one(const trace::Trace& trace) {
  constexpr std::string_view kFunctions[] = {"tanh", "gelu", "sigmoid", "silu", "glu",
                                             "mish", "lstm", "gru",     "rnn"};
  for (const auto& phase : trace.phases)
    for (const auto& step : phase.steps)
      if (const auto* call = std::get_if<trace::Call>(&step))
        for (const auto function : kFunctions)
          if (call->op.find(function) != std::string::npos) return true;
  return false;
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

}  // namespace nereid::replay
