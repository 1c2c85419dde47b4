// How large the numbers are that a forward's exponentials take differences of. An exponential of a difference
// is right only where the rounding of both numbers is small next to what it can take: of scores about 2^40 an
// ulp is 2^16. A kernel whose compiler makes one operation of `score * scale - maximum` rounds the product
// once less than the maximum, and the exponential of an ulp overflows.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "nereid/replay/worker/trial/trial_forward.h"

namespace nereid::replay {

// By step and value: operands of the judged forward that a softmax, a logsumexp or attention works on, or
// that are added or subtracted on their way to one or to an exponential. A product on the way is where that
// ends: what it makes counts, and not its factors.
std::set<std::pair<int, trace::ValueId>> exponent_operands(const trace::Trace& trace);

// By how much the inputs of kFar or kWide, `apply_distribution` having made them, are to be multiplied so
// that no exponential is decided by rounding: 1 where they need not be. Nothing where no factor does that,
// or where it cannot be found.
std::optional<double> factor_for_exponents(TrialForward& forward, const std::set<trace::StorageId>& inputs);

}  // namespace nereid::replay
