// How a request's tokens are drawn, and when a sample ends by what it drew. Stop texts are StopMatcher's,
// which calls Scheduler::stop.
#pragma once

#include <cstdint>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

using lm::TokenId;

struct SamplingParameters {
  double temperature = 1;  // 0: the most probable token
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // in (0, 1]
  double min_p = 0;        // in [0, 1]
  uint64_t seed = 0;       // of the request; its samples differ by their number

  int64_t max_tokens = 256;               // drawn for each sample
  std::vector<TokenId> stop_tokens = {};  // end a sample; they are its last token
};

// An error names the parameter, what was expected and what came.
Status check_sampling(const SamplingParameters& parameters);

}  // namespace nereid::lm
