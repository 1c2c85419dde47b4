// The tokens of words that were encoded before. Text is made of few words: nearly all work is a look into
// this table.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

class WordCache {
 public:
  static constexpr size_t kLongestWord = 256;  // bytes; longer ones are seldom seen twice

  WordCache() : slots_(kFirstSlots) {}

  // Where `word` was kept: its tokens are appended, and the answer is true. Not for the empty word.
  // `readable`: how many bytes may be read from word.data() on, at least its size.
  bool append(std::string_view word, size_t readable, std::vector<TokenId>& ids) const {
    if (word.size() > kLongestWord) return false;
    const Key key = key_of(word, readable);
    for (size_t at = key.hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.length == 0) return false;
      if (slot.first == key.first && slot.second == key.second && slot.length == word.size() &&
          (word.size() <= 16 ||
           std::memcmp(long_words_.data() + slot.long_word, word.data(), word.size()) == 0)) {
        if (slot.count == 1) {
          ids.push_back(static_cast<TokenId>(slot.tokens));
        } else {
          const auto begin = tokens_.begin() + slot.tokens;
          ids.insert(ids.end(), begin, begin + slot.count);
        }
        return true;
      }
    }
  }

  // Keeps the tokens of a word that is not kept yet. When there are many, all are forgotten first.
  void keep(std::string_view word, size_t readable, std::span<const TokenId> ids);

 private:
  static constexpr size_t kFirstSlots = size_t{1} << 12, kMaxSlots = size_t{1} << 19;
  // Of a word up to 16 bytes these are its bytes and zeros; of a longer one two hashes.
  struct Key {
    uint64_t first, second, hash;
  };
  struct Slot {
    uint64_t first = 0, second = 0;
    uint16_t length = 0;  // 0: free
    uint16_t count = 0;
    uint32_t tokens = 0;     // the one token, or where they begin in tokens_
    uint32_t long_word = 0;  // where a word over 16 bytes is in long_words_
    uint32_t hash = 0;
  };

  static uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static Key key_of(std::string_view word, size_t readable) {
    static_assert(std::endian::native == std::endian::little);
    uint64_t first = 0, second = 0;
    if (word.size() > 16) {
      for (size_t at = 0; at < word.size(); at += 8) {
        uint64_t eight = 0;
        std::memcpy(&eight, word.data() + at, std::min<size_t>(8, word.size() - at));
        first = mix(first ^ eight, second + at), second += eight;
      }
      return {first, second, mix(first, second)};
    }
    if (readable >= 16) {
      std::memcpy(&first, word.data(), 8);
      std::memcpy(&second, word.data() + 8, 8);
      const size_t bits = 8 * word.size();
      first &= bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      second &= bits >= 128 ? ~uint64_t{0} : bits <= 64 ? 0 : (uint64_t{1} << (bits - 64)) - 1;
    } else {
      std::memcpy(&first, word.data(), std::min<size_t>(8, word.size()));
      if (word.size() > 8) std::memcpy(&second, word.data() + 8, word.size() - 8);
    }
    return {first, second, mix(first, second)};
  }
  void grow();

  std::vector<Slot> slots_;
  size_t used_ = 0;
  std::vector<TokenId> tokens_;
  std::string long_words_;
};

}  // namespace nereid::lm
