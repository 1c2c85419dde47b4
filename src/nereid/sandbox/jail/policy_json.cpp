#include "nereid/sandbox/jail/policy_json.h"

#include <nlohmann/json.hpp>

namespace nereid::sandbox {
namespace {

// Each field by its name, whichever way it goes.
template <typename P, typename Field>
void each_field(P& policy, const Field& field) {
  field("readable", policy.readable), field("executables", policy.executables);
  field("shared_memory", policy.shared_memory), field("messages", policy.messages);
  field("needs_scratch", policy.needs_scratch), field("devices", policy.devices);
  field("own_root", policy.own_root), field("namespaces", policy.namespaces);
  field("pid_namespace", policy.pid_namespace), field("landlock", policy.landlock);
  auto& limits = policy.limits;
  field("memory_bytes", limits.memory_bytes), field("scratch_bytes", limits.scratch_bytes);
  field("file_bytes", limits.file_bytes), field("cpu_seconds", limits.cpu_seconds);
  field("open_files", limits.open_files), field("tasks", limits.tasks);
}

}  // namespace

nlohmann::json to_json(const Policy& policy) {
  nlohmann::json json;
  each_field(policy, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

Policy policy_from_json(const nlohmann::json& json) {
  Policy policy;
  each_field(policy, [&](const char* name, auto& value) { json.at(name).get_to(value); });
  return policy;
}

}  // namespace nereid::sandbox
