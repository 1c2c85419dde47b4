// One step's answers between the engine and the update: what a checkpoint keeps where the engine is a step
// ahead.
#pragma once

#include "nereid/train/rl/writer.h"

namespace nereid::train {

// Prompt p of a step is rank (p % ranks)'s.
struct PrefetchedRollouts {
  int64_t step = 0;
  std::vector<int64_t> classes;      // of each prompt, of all ranks
  std::vector<size_t> tasks;         // its number in its class
  std::vector<DrawnAnswer> answers;  // of this rank's prompts, in their order
};

std::string to_cbor(const PrefetchedRollouts& written);

// This rank's share of what all ranks kept, whatever their number was. Of the answers there are the prompt's
// number, tokens and log-probabilities alone: AnswerWriter::finish has the rest. What does not fit together
// is an error (blamed on the input) that names `where`.
Result<PrefetchedRollouts> prefetched_rollouts_of(const std::vector<std::string>& kept, int64_t rank,
                                                  int64_t ranks, int64_t vocab_size,
                                                  const std::string& where);

}  // namespace nereid::train
