#include "nereid/train/rl/rollouts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "nereid/base/check.h"

namespace nereid::train {
namespace {

void append_document(Batch& batch, size_t length) {
  for (size_t i = 0; i < length; ++i) batch.positions.push_back(static_cast<int32_t>(i));
  batch.tokens.resize(batch.tokens.size() + length, 0);
  batch.targets.resize(batch.targets.size() + length, kNoTarget);
  batch.cumulative_lengths.push_back(static_cast<int32_t>(batch.tokens.size()));
  batch.longest = std::max(batch.longest, static_cast<int32_t>(length));
}

}  // namespace

PackedAnswers pack_answers(const std::vector<WrittenAnswer>& answers, int64_t row_length,
                           int64_t micro_batch_size) {
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](size_t i) { return answers[i].tokens.size(); });
  std::vector<std::vector<size_t>> rows;
  std::multimap<int64_t, size_t> room;
  for (const size_t i : order) {
    const auto length = std::ssize(answers[i].tokens);
    NEREID_CHECK(length <= row_length && answers[i].prompt >= 1,
                 "an answer of at most {} tokens behind a prompt, got {} and {}", row_length, length,
                 answers[i].prompt);
    size_t row = rows.size();
    int64_t left = row_length;
    if (const auto best = room.lower_bound(length); best != room.end()) {
      left = best->first, row = best->second;
      room.erase(best);
    } else {
      rows.emplace_back();
    }
    rows[row].push_back(i);
    room.emplace(left - length, row);
  }
  PackedAnswers packed;
  packed.places.resize(answers.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    if (row % static_cast<size_t>(micro_batch_size) == 0) {
      Batch& batch = packed.batches.emplace_back();
      batch.row_length = row_length, batch.cumulative_lengths = {0};
    }
    Batch& batch = packed.batches.back();
    ++batch.rows;
    for (const size_t i : rows[row]) {
      const size_t at = batch.tokens.size();
      const auto& tokens = answers[i].tokens;
      append_document(batch, tokens.size());
      std::ranges::copy(tokens, batch.tokens.begin() + static_cast<std::ptrdiff_t>(at));
      for (size_t t = answers[i].prompt; t < tokens.size(); ++t) batch.targets[at + t - 1] = tokens[t];
      packed.places[i] = {.batch = packed.batches.size() - 1, .first = at + answers[i].prompt - 1};
    }
    const auto end = static_cast<size_t>(batch.rows * row_length);
    if (batch.tokens.size() < end) append_document(batch, end - batch.tokens.size());
  }
  return packed;
}

}  // namespace nereid::train
