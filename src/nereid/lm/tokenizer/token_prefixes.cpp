#include "nereid/lm/tokenizer/token_prefixes.h"

#include <algorithm>

namespace nereid::lm {

TokenPrefixes::TokenPrefixes(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.size(); ++id)
    if (const auto bytes = tokenizer.bytes(id); !bytes.empty() && !tokenizer.special(id)) {
      entries_.push_back({bytes, id});
      longest_ = std::max(longest_, bytes.size());
    }
  std::ranges::sort(entries_, {}, &Entry::bytes);
}

size_t TokenPrefixes::lower_bound(std::string_view text) const {
  return static_cast<size_t>(std::ranges::lower_bound(entries_, text, {}, &Entry::bytes) - entries_.begin());
}

std::vector<size_t> TokenPrefixes::open_suffixes(std::string_view text) const {
  std::vector<size_t> found;
  for (size_t length = std::min(text.size(), longest_); length > 0; --length) {
    const std::string_view suffix = text.substr(text.size() - length);
    size_t at = lower_bound(suffix);
    while (at < entries_.size() && entries_[at].bytes == suffix) ++at;
    if (at < entries_.size() && entries_[at].bytes.starts_with(suffix)) found.push_back(length);
  }
  return found;
}

std::vector<int64_t> TokenPrefixes::next_tokens(std::string_view text) const {
  std::vector<int64_t> found;
  if (text.empty()) return found;
  for (size_t length = 1; length < text.size(); ++length) {
    const std::string_view begun = text.substr(0, length);
    for (size_t at = lower_bound(begun); at < entries_.size() && entries_[at].bytes == begun; ++at)
      found.push_back(entries_[at].id);
  }
  for (size_t at = lower_bound(text); at < entries_.size() && entries_[at].bytes.starts_with(text); ++at)
    found.push_back(entries_[at].id);
  std::ranges::sort(found);
  return found;
}

Result<HealedText> encode_healed(std::string_view text, Encoder& encoder, const Tokenizer& tokenizer,
                                 const TokenPrefixes& prefixes) {
  std::vector<TokenId> common;
  NEREID_TRY_STATUS(encoder.encode(text, {.add_special = false}, common));
  // A token over the end begins with one of these suffixes; what is before it is encoded without it.
  for (const size_t suffix : prefixes.open_suffixes(text)) {
    std::vector<TokenId> ids;
    NEREID_TRY_STATUS(encoder.encode(text.substr(0, text.size() - suffix), {.add_special = false}, ids));
    common.erase(std::ranges::mismatch(common, ids).in1, common.end());
  }
  HealedText healed{.tokens = {common.begin(), common.end()}, .rest = {}};
  size_t written = 0;
  for (const TokenId id : common) written += tokenizer.bytes(id).size();
  healed.rest = text.substr(std::min(written, text.size()));
  return healed;
}

}  // namespace nereid::lm
