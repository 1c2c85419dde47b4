// What one step trains on: rows of packed documents, as the decoder takes them.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "nereid/train/data/packer.h"
#include "nereid/train/data/token_set.h"

namespace nereid::train {

inline constexpr int32_t kNoTarget = -100;

// Rows one after the other, of one forward. A document attends to itself alone; so does what fills up a row.
struct Batch {
  int64_t rows = 0, row_length = 0;
  std::vector<int32_t> tokens;     // [rows * row_length]; 0 where a row is filled up
  std::vector<int32_t> targets;    // [rows * row_length]: what each place is to predict, or kNoTarget
  std::vector<int32_t> positions;  // [rows * row_length], from 0 in each document
  std::vector<int32_t> cumulative_lengths;  // [documents + 1] from 0 to rows * row_length
  int32_t longest = 0;                      // document
};

struct StepData {
  std::vector<Batch> batches;  // of this rank; gradients of all are added
  // Of all ranks together:
  int64_t targets = 0;    // that are predicted: what the step's loss is the mean over
  int64_t documents = 0;  // without what fills up rows
  int64_t tokens = 0;     // likewise
  Place next;             // where the step after this one begins
};

struct BatchSettings {
  PackingSettings packing;
  int64_t global_batch_size = 1, micro_batch_size = 1;
  int64_t rank = 0, ranks = 1;
};

// All ranks go through the same rows; each reads the tokens of its own: global_batch_size / ranks that lie
// together.
class BatchMaker {
 public:
  // An error where global_batch_size is not a multiple of micro_batch_size * ranks.
  static Result<BatchMaker> create(const TokenSet& set, const BatchSettings& settings,
                                   const Place& place = {});

  Result<StepData> next();
  uint64_t too_long() const { return too_long_; }      // documents that fit no row: left out
  uint64_t answerless() const { return answerless_; }  // documents with nothing to learn: left out

 private:
  BatchMaker(const TokenSet& set, const BatchSettings& settings, Packer packer)
      : set_(&set), settings_(settings), packer_(std::move(packer)) {}
  Status append(const Row& row, Batch& batch) const;

  const TokenSet* set_;
  BatchSettings settings_;
  Packer packer_;
  uint64_t too_long_ = 0, answerless_ = 0;
};

// The next steps' data, made by a thread of its own.
class BatchStream {
 public:
  explicit BatchStream(BatchMaker maker, size_t ahead = 2);
  Result<StepData> next();

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Result<StepData>> ready_;
  std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace nereid::train
