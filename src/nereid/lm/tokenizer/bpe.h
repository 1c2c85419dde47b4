// Byte-pair encoding of one word: bytes become symbols, and the pair whose merge comes first in the list
// (leftmost among equals) is merged until none is left.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nereid::lm {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// The merges by pair. A table of our own: an entry is 16 bytes, found in about one cache line.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = UINT32_MAX;  // the lower the sooner; UINT32_MAX: this pair does not merge
    TokenId merged = kNoToken;
  };

  explicit MergeTable(size_t merges = 0);
  // A pair that is added again takes the new rank.
  void add(TokenId left, TokenId right, Merge merge);
  Merge find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.key == key) return entry.merge;
      if (entry.key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;  // of two kNoToken
  struct Entry {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static uint64_t key_of(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<Entry> entries_;
  size_t mask_ = 0;
  int shift_ = 63;
};

struct BpeModel {
  // The token of each single byte; kNoToken where the vocabulary lacks it: such bytes vanish, as they do in
  // `tokenizers`.
  std::array<TokenId, 256> byte_tokens;
  MergeTable merges;
};

// Merges words; keeps buffers, so one for each thread.
class WordMerger {
 public:
  explicit WordMerger(const BpeModel& model) : model_(model) {}
  // Appends the tokens of `word` to `out`. Time is n log n in a long word's length.
  void encode(std::string_view word, std::vector<TokenId>& out);

 private:
  struct Symbol {
    TokenId token;
    int32_t left, right;  // neighbours, -1 at the ends
  };
  void encode_short(size_t count, std::vector<TokenId>& out);
  void encode_long(std::vector<TokenId>& out);
  void queue_pair(int32_t at);

  static constexpr size_t kShort =
      48;  // below that, looking for the lowest rank costs less than keeping a heap

  const BpeModel& model_;
  std::array<TokenId, kShort> tokens_;
  std::array<MergeTable::Merge, kShort> pairs_;  // of tokens_[i] and tokens_[i + 1]
  std::vector<Symbol> symbols_;
  struct Candidate {
    uint64_t order;  // rank, then place
    TokenId merged;
  };
  std::vector<Candidate> heap_;
};

}  // namespace nereid::lm
