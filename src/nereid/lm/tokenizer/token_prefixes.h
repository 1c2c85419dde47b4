// The tokens of a vocabulary by how their bytes begin: where a text that a model did not write may end.
//
// A text that is put into an answer ends at a token's end only where no token of the vocabulary goes on over
// that end: of "... [8, 32]\n" before "#3 relu(#2)" the last token may be "]\n#". So the text is cut before
// its longest suffix that a longer token begins with, or earlier where tokens before that would be others
// then, and what was cut off is what the next tokens have to begin with ("token healing").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

// Without special tokens. `tokenizer` outlives it; threads share one.
class TokenPrefixes {
 public:
  explicit TokenPrefixes(const Tokenizer& tokenizer);

  // Lengths of the suffixes of `text` that longer tokens begin with, the longest first.
  std::vector<size_t> open_suffixes(std::string_view text) const;
  // Where `text` comes next: the tokens that it begins with, and those that begin with it, by id. Empty where
  // the vocabulary cannot write it.
  std::vector<int64_t> next_tokens(std::string_view text) const;

 private:
  struct Entry {
    std::string_view bytes;
    TokenId id;
  };
  size_t lower_bound(std::string_view text) const;

  std::vector<Entry> entries_;  // by bytes
  size_t longest_ = 0;
};

// A text in tokens, and the rest, which the next tokens begin with.
struct HealedText {
  std::vector<int64_t> tokens;
  std::string rest;
};
// The tokens that `text` begins with, whatever comes after it.
Result<HealedText> encode_healed(std::string_view text, Encoder& encoder, const Tokenizer& tokenizer,
                                 const TokenPrefixes& prefixes);

}  // namespace nereid::lm
