#include "nereid/replay/worker/trial/other_references.h"

#include <fmt/format.h>

#include "nereid/replay/host/upcast.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

Float64Reference* OtherReferences::upcast_to_float64(const Tf32& tf32, const std::string& name) {
  const auto found = references_.find(name);
  if (found != references_.end()) return found->second.get();
  return add(name, loaded_.trace, tf32);
}

Float64Reference* OtherReferences::add(const std::string& name, const trace::Trace& trace, const Tf32& tf32) {
  auto& made = references_[name];
  auto upcasted = upcast(trace, tf32);
  if (!upcasted.ok()) {
    unavailable_reason_ = upcasted.error().message;
    return nullptr;
  }
  try {
    made = std::make_unique<Float64Reference>(std::move(upcasted).value(), loaded_.program->written_state(),
                                              machine_);
  } catch (const Failed& failed) {
    unavailable_reason_ = failed.what();
  }
  return made.get();
}

Float64Reference* OtherReferences::with_rounded_scalars(RoundedScalars kind) {
  const auto name = fmt::format("scalars {}", static_cast<int>(kind));
  const auto found = references_.find(name);
  if (found != references_.end()) return found->second.get();
  auto trace = loaded_.trace;
  if (!round_scalars(trace, kind)) return (references_[name] = nullptr).get();
  return add(name, trace, {});
}

Float64Reference* OtherReferences::order_checked() {
  const auto found = references_.find("order_check");
  if (found != references_.end()) return found->second.get();
  auto& made = references_["order_check"];
  auto upcasted = upcast(loaded_.trace, {});
  if (upcasted.ok() && mark_order_sensitive(upcasted.value()))
    made = std::make_unique<Float64Reference>(std::move(upcasted).value(), loaded_.program->written_state(),
                                              machine_);
  return made.get();
}

Float64Reference* OtherReferences::in_own_dtypes() {
  auto& made = references_["own"];
  if (!made)
    made = std::make_unique<Float64Reference>(keep_dtypes(loaded_.trace), loaded_.program->written_state(),
                                              machine_);
  return made.get();
}

}  // namespace nereid::replay
