// Casts to integers and booleans in the judged forward, and whether a replay's numbers change by them.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// Whether some number changes when `from` is cast to `to`, integers or booleans: 0.5 to int32, 2 to bool,
// 300 to int8. What a floating-point number beyond the range of `to` becomes is not defined, and no change.
bool cast_changes(const at::Tensor& from, trace::DType to);

class CastCheck {
 public:
  CastCheck() = default;
  explicit CastCheck(const trace::Trace& trace);

  bool any() const { return !casts_.empty(); }
  // An operand of a step of the judged forward, about to be used.
  void see(int step, trace::ValueId operand, const at::Tensor& tensor);
  // The steps whose casts have changed a number since the last call.
  std::vector<int> take();

 private:
  std::map<std::pair<int, trace::ValueId>, trace::DType> casts_;  // by step and operand: cast to what
  std::set<int> changed_;
};

}  // namespace nereid::replay
