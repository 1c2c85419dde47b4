// Conversations: an answer to a task and, after each wrong one, the verdict's feedback and another answer.
#pragma once

#include <vector>

#include "nereid/train/rl/policy/policy.h"
#include "nereid/train/rl/scoring.h"

namespace nereid::train {

struct ConversationSettings {
  int64_t turns = 1;  // answers at most
  Sampling sampling{};
  bool judge_waits = false;  // until all of a turn's answers are written
};

// sampling.samples conversations about each prompt, as far as the model has room for an answer as long as the
// one before: the first turn's answers by prompts and samples, then the second's. Each is added to `round`
// under its index; the last turn's are not waited for. A conversation ends with an answer that is right, was
// cut off, or has no verdict.
Result<std::vector<DrawnAnswer>> converse(Policy& policy, const std::vector<Prompt>& prompts,
                                          const ConversationSettings& settings, ScoringRound& round);

}  // namespace nereid::train
