#include "nereid/train/rl/sft_mix.h"

#include <algorithm>

namespace nereid::train {

Result<std::unique_ptr<SftMix>> SftMix::open(const SftMixSettings& settings, const RunFile& run,
                                             const Ranks& ranks, const std::string& tokenizer,
                                             const std::string& run_file) {
  NEREID_TRY(TokenSet set, TokenSet::open(settings.train));
  if (set.tokenizer() != tokenizer)
    return input_error(
        "{}: sft_mix.train: {} was made with another tokenizer (SHA-256 {}) than rl.tokenizer ({})", run_file,
        settings.train.front(), set.tokenizer(), tokenizer);
  if (settings.rows % ranks.count() != 0)
    return input_error("{}: sft_mix.rows: expected a multiple of the {} ranks, got {}", run_file,
                       ranks.count(), settings.rows);
  int64_t at_once = std::min(settings.rows / ranks.count(), run.data.micro_batch_size);
  while (settings.rows / ranks.count() % at_once != 0) --at_once;
  return std::unique_ptr<SftMix>(new SftMix(std::move(set),
                                            {.packing = {.row_length = run.data.sequence_length,
                                                         .window = run.data.window,
                                                         .seed = static_cast<uint64_t>(run.seed)},
                                             .global_batch_size = settings.rows,
                                             .micro_batch_size = at_once,
                                             .rank = ranks.rank(),
                                             .ranks = ranks.count()},
                                            settings.weight));
}

Status SftMix::begin(const Place& place) {
  NEREID_TRY(auto maker, BatchMaker::create(set_, settings_, place));
  place_ = place;
  stream_.emplace(std::move(maker));
  return ok_status();
}

Result<StepData> SftMix::next() {
  NEREID_TRY(StepData step, stream_->next());
  place_ = step.next;
  return step;
}

}  // namespace nereid::train
