#include "nereid/lm/tokenizer/bpe.h"

#include <algorithm>
#include <bit>

#include "nereid/base/check.h"

namespace nereid::lm {

MergeTable::MergeTable(size_t merges) {
  // At least two slots, so that the shift is below 64; half of them stay empty.
  const size_t slots = std::bit_ceil(std::max<size_t>(2, 2 * merges));
  entries_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t at = slot_of(key);
  for (size_t seen = 0; entries_[at].key != key && entries_[at].key != kEmpty; at = (at + 1) & mask_)
    NEREID_CHECK(++seen < mask_, "a merge table with room, it was made for {} merges", entries_.size() / 2);
  entries_[at] = {key, merge};
}

void WordMerger::encode(std::string_view word, std::vector<TokenId>& out) {
  if (word.size() <= kShort) {
    size_t count = 0;
    for (const char byte : word) {
      tokens_[count] = model_.byte_tokens[static_cast<unsigned char>(byte)];
      count += tokens_[count] != kNoToken;
    }
    encode_short(count, out);
    return;
  }
  symbols_.clear();
  for (const char byte : word) {
    const TokenId token = model_.byte_tokens[static_cast<unsigned char>(byte)];
    if (token == kNoToken) continue;
    const auto at = static_cast<int32_t>(symbols_.size());
    symbols_.push_back({token, at - 1, at + 1});
  }
  if (!symbols_.empty()) symbols_.back().right = -1;
  encode_long(out);
}

void WordMerger::encode_short(size_t count, std::vector<TokenId>& out) {
  for (size_t i = 0; i + 1 < count; ++i) pairs_[i] = model_.merges.find(tokens_[i], tokens_[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (pairs_[i].rank < pairs_[best].rank) best = i;
    if (pairs_[best].rank == UINT32_MAX) break;
    tokens_[best] = pairs_[best].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) tokens_[i] = tokens_[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) pairs_[i] = pairs_[i + 1];
    if (best > 0) pairs_[best - 1] = model_.merges.find(tokens_[best - 1], tokens_[best]);
    if (best + 1 < count) pairs_[best] = model_.merges.find(tokens_[best], tokens_[best + 1]);
  }
  out.insert(out.end(), tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(count));
}

void WordMerger::queue_pair(int32_t at) {
  const Symbol& left = symbols_[static_cast<size_t>(at)];
  if (left.right < 0) return;
  const MergeTable::Merge merge =
      model_.merges.find(left.token, symbols_[static_cast<size_t>(left.right)].token);
  if (merge.rank != UINT32_MAX)
    heap_.push_back({uint64_t{merge.rank} << 32 | static_cast<uint32_t>(at), merge.merged});
}

void WordMerger::encode_long(std::vector<TokenId>& out) {
  const auto later = [](const Candidate& a, const Candidate& b) { return a.order > b.order; };
  heap_.clear();
  for (size_t i = 0; i < symbols_.size(); ++i) queue_pair(static_cast<int32_t>(i));
  std::ranges::make_heap(heap_, later);
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, later);
    const Candidate top = heap_.back();
    heap_.pop_back();
    const auto at = static_cast<int32_t>(top.order & UINT32_MAX);
    Symbol& left = symbols_[static_cast<size_t>(at)];
    if (left.token == kNoToken || left.right < 0) continue;  // it is gone, or its right neighbour is
    Symbol& right = symbols_[static_cast<size_t>(left.right)];
    const MergeTable::Merge now = model_.merges.find(left.token, right.token);
    if (now.rank != top.order >> 32) continue;  // it has grown since
    left.token = now.merged;
    left.right = right.right;
    right.token = kNoToken;
    if (left.right >= 0) symbols_[static_cast<size_t>(left.right)].left = at;
    for (const int32_t first : {left.left, at}) {
      if (first < 0) continue;
      const size_t before = heap_.size();
      queue_pair(first);
      if (heap_.size() > before) std::ranges::push_heap(heap_, later);
    }
  }
  for (const Symbol& symbol : symbols_)
    if (symbol.token != kNoToken) out.push_back(symbol.token);
}

}  // namespace nereid::lm
