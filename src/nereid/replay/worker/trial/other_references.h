// The reference's forward in other arithmetic, each made when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "nereid/replay/host/rounded_scalars.h"
#include "nereid/replay/worker/compare/float64_reference.h"
#include "nereid/replay/worker/roles/role.h"

namespace nereid::replay {

class OtherReferences {
 public:
  // Both outlive it; the task is loaded before the first question.
  OtherReferences(const Loaded& loaded, Machine& machine) : loaded_(loaded), machine_(machine) {}

  // In float64, with products rounded as `tf32` says; `name` is another for each other `tf32`. Null where it
  // cannot be: see unavailable_reason().
  Float64Reference* upcast_to_float64(const Tf32& tf32, const std::string& name);
  // Null where no scalar of that kind is rounded.
  Float64Reference* with_rounded_scalars(RoundedScalars kind);
  Float64Reference* in_float64() { return upcast_to_float64({}, "f64"); }
  // From now on there is none in float64.
  void give_up_float64(std::string why) {
    unavailable_reason_ = std::move(why), references_["f64"] = nullptr;
  }
  const std::string& unavailable_reason() const { return unavailable_reason_; }

  // Null where no sum of the forward depends on its order.
  Float64Reference* order_checked();
  Float64Reference* in_own_dtypes();

 private:
  Float64Reference* add(const std::string& name, const trace::Trace& trace, const Tf32& tf32);

  const Loaded& loaded_;
  Machine& machine_;
  std::map<std::string, std::unique_ptr<Float64Reference>> references_;  // null: cannot be
  std::string unavailable_reason_;
};

}  // namespace nereid::replay
