#include "nereid/lm/tokenizer/word_cache.h"

#include <algorithm>

namespace nereid::lm {

void WordCache::keep(std::string_view word, size_t readable, std::span<const TokenId> ids) {
  if (word.empty() || word.size() > kLongestWord) return;
  if (2 * used_ >= slots_.size()) {
    if (slots_.size() < kMaxSlots) {
      grow();
    } else {
      std::ranges::fill(slots_, Slot{});
      used_ = 0;
      tokens_.clear();
      long_words_.clear();
    }
  }
  const Key key = key_of(word, readable);
  size_t at = key.hash & (slots_.size() - 1);
  while (slots_[at].length != 0) at = (at + 1) & (slots_.size() - 1);
  Slot& slot = slots_[at];
  slot = {.first = key.first,
          .second = key.second,
          .length = static_cast<uint16_t>(word.size()),
          .count = static_cast<uint16_t>(ids.size()),
          .hash = static_cast<uint32_t>(key.hash)};
  if (ids.size() == 1) {
    slot.tokens = static_cast<uint32_t>(ids[0]);
  } else {
    slot.tokens = static_cast<uint32_t>(tokens_.size());
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  }
  if (word.size() > 16) {
    slot.long_word = static_cast<uint32_t>(long_words_.size());
    long_words_ += word;
  }
  ++used_;
}

void WordCache::grow() {
  std::vector<Slot> larger(2 * slots_.size());
  for (const Slot& slot : slots_) {
    if (slot.length == 0) continue;
    size_t at = slot.hash & (larger.size() - 1);
    while (larger[at].length != 0) at = (at + 1) & (larger.size() - 1);
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace nereid::lm
