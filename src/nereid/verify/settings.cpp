#include "nereid/verify/settings.h"

namespace nereid::verify {

std::string_view to_string(Protocol protocol) {
  return protocol == Protocol::kKernelBench ? "kernelbench" : "nereid";
}

std::optional<Protocol> protocol_from_string(std::string_view name) {
  for (const auto protocol : {Protocol::kNereid, Protocol::kKernelBench})
    if (name == to_string(protocol)) return protocol;
  return std::nullopt;
}

Settings settings_for(const Settings& run, const Pair& pair) {
  const PairSettings& own = pair.settings;
  Settings settings = run;
  if (const auto policy = policy_from_string(own.policy)) settings.policy = *policy;
  if (const auto protocol = protocol_from_string(own.protocol)) settings.protocol = *protocol;
  if (own.device == "cpu") settings.device = replay::Device::kCpu, settings.time = settings.time_only = false;
  if (own.device == "cuda") settings.device = replay::Device::kCuda;
  if (own.trials) settings.trials = static_cast<int>(*own.trials);
  settings.seed = own.seed.value_or(run.seed);
  settings.time_limit = own.time_limit.value_or(run.time_limit);
  settings.verdict_limit = own.verdict_limit.value_or(run.verdict_limit);
  if (own.rtol) settings.tolerance.rtol = own.rtol;
  if (own.atol) settings.tolerance.atol = own.atol;
  settings.tolerance.allow_tf32 = own.allow_tf32.value_or(run.tolerance.allow_tf32);
  settings.fast_inputs = own.fast_inputs.value_or(run.fast_inputs);
  settings.shrink = own.shrink.value_or(run.shrink);
  settings.ignore_rules = own.ignore_rules.value_or(run.ignore_rules);
  settings.forbid.insert(pair.forbid.begin(), pair.forbid.end());
  settings.deadline = pair.deadline.owned_by(LimitOwner::kCaller);
  return settings;
}

}  // namespace nereid::verify
