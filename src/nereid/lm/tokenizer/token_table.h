// From a token's text to its id: 150,000 texts in one piece of memory, found by hash.
#pragma once

#include <bit>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

class TokenTable {
 public:
  void reserve(size_t tokens, size_t bytes) {
    bytes_.reserve(bytes);
    entries_.reserve(tokens);
    grow(std::bit_ceil(2 * tokens + 2));
  }
  size_t size() const { return entries_.size(); }

  // kNoToken where there is none.
  TokenId find(std::string_view text) const {
    if (slots_.empty()) return kNoToken;
    const uint32_t entry = slots_[slot_of(text, hash_of(text))];
    return entry == kFree ? kNoToken : entries_[entry].id;
  }
  // False where the text is there already: then nothing changes.
  bool add(std::string_view text, TokenId id) {
    if (2 * (entries_.size() + 1) > slots_.size()) grow(std::bit_ceil(4 * entries_.size() + 16));
    const uint32_t hash = hash_of(text);
    uint32_t& slot = slots_[slot_of(text, hash)];
    if (slot != kFree) return false;
    slot = static_cast<uint32_t>(entries_.size());
    entries_.push_back({bytes_.size(), static_cast<uint32_t>(text.size()), hash, id});
    bytes_ += text;
    return true;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Entry {
    size_t begin;
    uint32_t length, hash;
    TokenId id;
  };
  static uint32_t hash_of(std::string_view text) {
    return static_cast<uint32_t>(std::hash<std::string_view>()(text));
  }
  // Where the text lies, or the free place where it belongs.
  size_t slot_of(std::string_view text, uint32_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
      const Entry& entry = entries_[slots_[at]];
      if (entry.hash == hash && std::string_view(bytes_).substr(entry.begin, entry.length) == text) break;
    }
    return at;
  }
  void grow(size_t slots) {
    slots_.assign(slots, kFree);
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      size_t at = entries_[i].hash & (slots - 1);
      while (slots_[at] != kFree) at = (at + 1) & (slots - 1);
      slots_[at] = i;
    }
  }

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;
};

}  // namespace nereid::lm
