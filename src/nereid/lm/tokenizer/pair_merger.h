// The heart of training: which pairs of symbols are merged, in which order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nereid::lm {

struct LearnedVocabulary {
  std::vector<std::string> tokens;                    // by id, spelled
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // in order, each once
  std::vector<uint64_t> seen;                         // how often each of them was, when it was merged
};

class PairMerger {
 public:
  // The tokens that are there from the start, spelled, by id.
  explicit PairMerger(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  // A word that was seen `count` times. Words may be added in any order.
  void add(std::span<const uint32_t> symbols, uint64_t count);
  // Merges until there are `vocabulary` tokens, or no pair is seen `min_frequency` times, or at all. Once.
  LearnedVocabulary learn(size_t vocabulary, uint64_t min_frequency);

 private:
  using Pair = uint64_t;  // left << 32 | right, so that the lower pair is the lower number
  static Pair pair_of(uint32_t left, uint32_t right) { return Pair{left} << 32 | right; }
  struct Word {
    size_t begin;
    uint32_t length;
    uint64_t count;
  };
  // A pair in the queue, with the words where it was seen to arise.
  struct Candidate {
    int64_t count;
    Pair pair;
    uint32_t places;  // into places_
  };
  struct PairHash {
    size_t operator()(Pair pair) const { return (pair * 0x9E3779B97F4A7C15u) ^ (pair >> 29); }
  };

  void note(Pair pair, int64_t change, uint32_t word);
  void queue_noted();
  void merge_in(uint32_t word, Pair pair, uint32_t merged);

  std::vector<std::string> tokens_;
  std::vector<uint32_t> symbols_;  // of all words
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::vector<std::pair<Pair, uint32_t>>
      noted_;  // pairs that have arisen since the last merge, and in which words
  std::vector<std::vector<uint32_t>> places_;
  std::vector<Candidate> queue_;
};

}  // namespace nereid::lm
