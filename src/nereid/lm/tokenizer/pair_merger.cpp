// Counts are kept up to date by every merge, the queue is not: a pair whose count has changed since it was
// queued is put back with its new count when it comes up. One pair may be queued several times, each with the
// words where it arose between two merges. That happens when one token is made of two different pairs, and
// then its own neighbours arise twice. Such a pair may be merged twice; the second time is the one whose
// place in the list counts, as in the file that `tokenizers` writes.
#include "nereid/lm/tokenizer/pair_merger.h"

#include <algorithm>

namespace nereid::lm {

void PairMerger::add(std::span<const uint32_t> symbols, uint64_t count) {
  words_.push_back({symbols_.size(), static_cast<uint32_t>(symbols.size()), count});
  symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
}

void PairMerger::note(Pair pair, int64_t change, uint32_t word) {
  counts_[pair] += change;
  if (change > 0) noted_.emplace_back(pair, word);
}

namespace {

// The commonest pair comes first, of equals the lowest.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
};

}  // namespace

void PairMerger::queue_noted() {
  std::ranges::sort(noted_);
  noted_.erase(std::unique(noted_.begin(), noted_.end()), noted_.end());
  for (size_t i = 0; i < noted_.size();) {
    const Pair pair = noted_[i].first;
    std::vector<uint32_t> places;
    for (; i < noted_.size() && noted_[i].first == pair; ++i) places.push_back(noted_[i].second);
    const int64_t count = counts_[pair];
    if (count <= 0) continue;
    queue_.push_back({count, pair, static_cast<uint32_t>(places_.size())});
    places_.push_back(std::move(places));
    std::ranges::push_heap(queue_, kLater);
  }
  noted_.clear();
}

// Replaces the pair in one word, from left to right, in place; changes of adjacent pairs are recorded.
void PairMerger::merge_in(uint32_t number, Pair pair, uint32_t merged) {
  Word& word = words_[number];
  const auto left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
  const auto count = static_cast<int64_t>(word.count);
  uint32_t* symbols = symbols_.data() + word.begin;
  uint32_t kept = 0;
  for (uint32_t at = 0; at < word.length;) {
    if (symbols[at] != left || at + 1 == word.length || symbols[at + 1] != right) {
      symbols[kept++] = symbols[at++];
      continue;
    }
    if (kept > 0) {
      note(pair_of(symbols[kept - 1], left), -count, number);
      note(pair_of(symbols[kept - 1], merged), count, number);
    }
    at += 2;
    symbols[kept++] = merged;
    if (at < word.length) {
      note(pair_of(right, symbols[at]), -count, number);
      note(pair_of(merged, symbols[at]), count, number);
    }
  }
  word.length = kept;
}

LearnedVocabulary PairMerger::learn(size_t vocabulary, uint64_t min_frequency) {
  std::unordered_map<std::string, uint32_t> ids;
  for (uint32_t id = 0; id < tokens_.size(); ++id) ids.emplace(tokens_[id], id);
  for (uint32_t number = 0; number < words_.size(); ++number) {
    const Word& word = words_[number];
    for (uint32_t i = 0; i + 1 < word.length; ++i)
      note(pair_of(symbols_[word.begin + i], symbols_[word.begin + i + 1]), static_cast<int64_t>(word.count),
           number);
  }
  queue_noted();
  std::vector<Pair> merges;
  std::vector<uint64_t> seen;
  while (tokens_.size() < vocabulary && !queue_.empty()) {
    std::ranges::pop_heap(queue_, kLater);
    Candidate top = queue_.back();
    queue_.pop_back();
    if (const int64_t now = counts_[top.pair]; now != top.count) {
      top.count = now;
      queue_.push_back(top);
      std::ranges::push_heap(queue_, kLater);
      continue;
    }
    if (top.count < 1 || static_cast<uint64_t>(top.count) < min_frequency) break;
    const std::string token = tokens_[top.pair >> 32] + tokens_[top.pair & UINT32_MAX];
    const auto [known, fresh] = ids.emplace(token, static_cast<uint32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(token);
    merges.push_back(top.pair);
    seen.push_back(static_cast<uint64_t>(top.count));
    for (const uint32_t word : std::exchange(places_[top.places], {}))
      merge_in(word, top.pair, known->second);
    queue_noted();
  }

  LearnedVocabulary learned;
  std::unordered_map<Pair, size_t, PairHash> last;
  for (size_t i = 0; i < merges.size(); ++i) last[merges[i]] = i;
  for (size_t i = 0; i < merges.size(); ++i)
    if (last[merges[i]] == i) {
      learned.merges.emplace_back(static_cast<uint32_t>(merges[i] >> 32), static_cast<uint32_t>(merges[i]));
      learned.seen.push_back(seen[i]);
    }
  learned.tokens = std::move(tokens_);
  return learned;
}

}  // namespace nereid::lm
