#include "nereid/verify/rules/judged_outputs.h"

#include <fmt/format.h>

#include <algorithm>

namespace nereid::verify {

using trace::StorageId;
using trace::ValueId;

std::vector<FlatOutput> outputs_of(const TraceAnalysis& facts) {
  std::vector<FlatOutput> out;
  if (facts.judged() < 0) return out;
  for (const ValueId v : trace::tensors_in(facts.trace->phases[static_cast<size_t>(facts.judged())].output)) {
    const auto& value = facts.trace->values[static_cast<size_t>(v)];
    out.push_back({out.size(), value.storage, trace::is_floating(value.dtype)});
  }
  return out;
}

std::vector<FlatOutput> outputs_to_compute(const TraceAnalysis& reference, const Dataflow& reference_flow,
                                           const TraceAnalysis& candidate) {
  auto outputs = outputs_of(candidate);
  const auto wanted = outputs_of(reference);
  const bool any_floating =
      std::any_of(outputs.begin(), outputs.end(), [](const FlatOutput& o) { return o.floating; });
  std::erase_if(outputs, [&](const FlatOutput& o) {
    if (any_floating && !o.floating) return true;
    if (wanted.size() != outputs.size() || o.position >= wanted.size()) return false;
    return !reference_flow.output_computed.at(o.position);
  });
  return outputs;
}

std::string output_name(const FlatOutput& output, size_t count) {
  return count == 1 ? "The output" : fmt::format("Output {}", output.position);
}

std::string storage_name(const trace::Trace& trace, StorageId id) {
  const auto& storage = trace.storages[static_cast<size_t>(id)];
  switch (storage.role) {
    case trace::Role::kInput:
      return "input " + storage.name;
    case trace::Role::kParameter:
      return "parameter " + storage.name;
    case trace::Role::kBuffer:
      return "buffer " + storage.name;
    default:
      return "a tensor";
  }
}

std::string input_path(const TraceAnalysis& facts, StorageId id) {
  const auto values = trace::tensors_in(facts.trace->phases[static_cast<size_t>(facts.judged())].inputs);
  for (size_t i = 0; i < values.size(); ++i)
    if (facts.trace->values[static_cast<size_t>(values[i])].storage == id) return std::to_string(i);
  return "";
}

}  // namespace nereid::verify
