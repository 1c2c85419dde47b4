#include "nereid/train/data/batch.h"

#include <algorithm>

namespace nereid::train {
namespace {

// The first token of a document is no target.
int64_t targets_of(const TokenSet& set, uint64_t document) {
  int64_t count = 0;
  for (const Span& span : set.answers(document)) count += span.end - std::max(span.begin, 1u);
  return count;
}

}  // namespace

Result<BatchMaker> BatchMaker::create(const TokenSet& set, const BatchSettings& settings,
                                      const Place& place) {
  if (settings.global_batch_size % (settings.micro_batch_size * settings.ranks) != 0)
    return input_error("global_batch_size ({}) is not a multiple of micro_batch_size ({}) times {} ranks",
                       settings.global_batch_size, settings.micro_batch_size, settings.ranks);
  uint64_t too_long = 0, answerless = 0;
  std::vector<uint32_t> lengths(set.documents());
  for (uint64_t d = 0; d < set.documents(); ++d) {
    lengths[d] = set.length(d);
    if (lengths[d] > settings.packing.row_length)
      ++too_long, lengths[d] = 0;
    else if (targets_of(set, d) == 0)
      ++answerless, lengths[d] = 0;
  }
  NEREID_TRY(Packer packer, Packer::create(std::move(lengths), settings.packing, place));
  BatchMaker maker(set, settings, std::move(packer));
  maker.too_long_ = too_long, maker.answerless_ = answerless;
  return maker;
}

Result<StepData> BatchMaker::next() {
  StepData step;
  const int64_t own = settings_.global_batch_size / settings_.ranks, first = settings_.rank * own;
  for (int64_t r = 0; r < settings_.global_batch_size; ++r) {
    const Row& row = packer_.next();
    for (const uint64_t document : row) {
      step.targets += targets_of(*set_, document);
      step.tokens += set_->length(document);
      ++step.documents;
    }
    if (r < first || r >= first + own) continue;
    if ((r - first) % settings_.micro_batch_size == 0)
      step.batches.push_back({.rows = settings_.micro_batch_size,
                              .row_length = settings_.packing.row_length,
                              .tokens = {},
                              .targets = {},
                              .positions = {},
                              .cumulative_lengths = {0}});
    NEREID_TRY_STATUS(append(row, step.batches.back()));
  }
  step.next = packer_.place();
  return step;
}

Status BatchMaker::append(const Row& row, Batch& batch) const {
  const size_t end = batch.tokens.size() + static_cast<size_t>(batch.row_length);
  const auto grow = [&](size_t length) {
    for (size_t i = 0; i < length; ++i) batch.positions.push_back(static_cast<int32_t>(i));
    batch.tokens.resize(batch.tokens.size() + length, 0);
    batch.targets.resize(batch.targets.size() + length, kNoTarget);
    batch.cumulative_lengths.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.longest = std::max(batch.longest, static_cast<int32_t>(length));
  };
  for (const uint64_t document : row) {
    const size_t at = batch.tokens.size();
    grow(set_->length(document));
    NEREID_TRY_STATUS(set_->read(document, batch.tokens.data() + at));
    for (const Span& span : set_->answers(document))
      for (uint32_t i = std::max(span.begin, 1u); i < span.end; ++i)
        batch.targets[at + i - 1] = batch.tokens[at + i];
  }
  if (batch.tokens.size() < end) grow(end - batch.tokens.size());
  return ok_status();
}

BatchStream::BatchStream(BatchMaker maker, size_t ahead)
    : thread_([this, maker = std::move(maker), ahead](const std::stop_token& stop) mutable {
        while (!stop.stop_requested()) {
          auto step = maker.next();
          const bool last = !step.ok();
          std::unique_lock lock(mutex_);
          if (!changed_.wait(lock, stop, [&] { return ready_.size() < ahead; })) return;
          ready_.push_back(std::move(step));
          changed_.notify_all();
          if (last) return;
        }
      }) {}

// After an error there is nothing more: it is given again and again.
Result<StepData> BatchStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty(); });
  if (!ready_.front().ok()) return ready_.front().error();
  auto step = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return step;
}

}  // namespace nereid::train
