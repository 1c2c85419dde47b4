#include "nereid/verify/analysis/casts.h"

#include <algorithm>

namespace nereid::verify {

StepAnalysis::Cast cast_of(const trace::Trace& trace, const trace::StepAccess& access) {
  using Cast = StepAnalysis::Cast;
  const auto dtype = [&](const trace::Access& a) { return trace.values[static_cast<size_t>(a.value)].dtype; };
  const auto any = [&](const std::vector<trace::Access>& list, bool (*is)(trace::DType)) {
    return std::ranges::any_of(list, [&](const trace::Access& a) { return is(dtype(a)); });
  };
  const auto &reads = access.reads, &writes = access.writes;
  if (any(reads, trace::is_floating) && any(writes, trace::is_integral)) return Cast::kFromFloat;
  if (any(reads, trace::is_integral) && any(writes, trace::is_floating)) return Cast::kToFloat;
  for (const auto& read : reads)
    for (const auto& write : writes)
      if (dtype(read) != dtype(write) && trace::is_integral(dtype(write))) return Cast::kIntegral;
  return Cast::kNone;
}

}  // namespace nereid::verify
