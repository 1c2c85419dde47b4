// Supervised data of earlier training, mixed into every update, so that the model does not forget it.
#pragma once

#include <memory>
#include <optional>

#include "nereid/train/data/batch.h"
#include "nereid/train/ranks/ranks.h"
#include "nereid/train/rl/objective/rl_file.h"

namespace nereid::train {

// Rows of token shards, packed and ordered as supervised fine-tuning has them: a function of the run's seed
// and of a place.
class SftMix {
 public:
  // Errors (blamed on the input) where the shards are of another tokenizer than `tokenizer` (SHA-256 of its
  // file), or rows cannot be shared among the ranks; `run_file` names it in errors.
  static Result<std::unique_ptr<SftMix>> open(const SftMixSettings& settings, const RunFile& run,
                                              const Ranks& ranks, const std::string& tokenizer,
                                              const std::string& run_file);

  // Goes on at that place; before the first `next`.
  Status begin(const Place& place);
  // One update's, of this rank.
  Result<StepData> next();
  const Place& place() const { return place_; }  // after what `next` gave
  const std::string& fingerprint() const { return set_.fingerprint(); }
  double weight() const { return weight_; }

 private:
  SftMix(TokenSet set, const BatchSettings& settings, double weight)
      : set_(std::move(set)), settings_(settings), weight_(weight) {}

  TokenSet set_;
  BatchSettings settings_;
  double weight_;
  Place place_;
  std::optional<BatchStream> stream_;  // reads set_
};

}  // namespace nereid::train
