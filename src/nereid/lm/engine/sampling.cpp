#include "nereid/lm/engine/sampling.h"

#include <cmath>

namespace nereid::lm {

Status check_sampling(const SamplingParameters& p) {
  // Written so that a NaN is refused too.
  if (!(p.temperature >= 0) || std::isinf(p.temperature))
    return input_error("temperature: expected a number from 0, got {}", p.temperature);
  if (p.top_k < 0) return input_error("top_k: expected 0 (all) or more, got {}", p.top_k);
  if (!(p.top_p > 0 && p.top_p <= 1))
    return input_error("top_p: expected a number above 0, up to 1, got {}", p.top_p);
  if (!(p.min_p >= 0 && p.min_p <= 1))
    return input_error("min_p: expected a number from 0 to 1, got {}", p.min_p);
  if (p.max_tokens < 1) return input_error("max_tokens: expected 1 or more, got {}", p.max_tokens);
  return ok_status();
}

}  // namespace nereid::lm
