// The pre-tokenizers of Qwen 2 to 3 and of Llama 3, written by hand: the next word of a text. Both are one
// regular expression, but for how many digits stand together:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,DIGITS} | ?[^\s\p{L}\p{N}]+[\r\n]* |
//   \s*[\r\n]+ | \s+(?!\S) | \s+
//
// Every character belongs to a word. word_scanner_test.cpp holds this against PCRE2 on texts drawn from every
// class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nereid/lm/text/unicode.h"

namespace nereid::lm {

// The expressions as tokenizer files spell them; nothing else is scanned.
inline constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class WordScanner {
 public:
  // `digits`: how many of \p{N} a word holds at most.
  WordScanner(std::string_view text, int digits)
      : at_(text.data()), end_(text.data() + text.size()), classes_(unicode_table()), digits_(digits) {}

  bool done() const { return at_ == end_; }
  // The next word, never empty. Not to be asked when done.
  std::string_view next();

 private:
  struct Character {
    uint8_t bits;    // of UnicodeClass
    uint8_t length;  // bytes; 0 at the end of the text
  };
  Character look(const char* p) const {
    if (p == end_) return {0, 0};
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) return {classes_[byte], 1};
    const CodePoint c = first_code_point(p);
    return {unicode_class(classes_, c.value), static_cast<uint8_t>(c.length)};
  }
  // After all characters from `p` on that have one of these classes.
  const char* skip(const char* p, int bits) const {
    while (true) {
      const Character c = look(p);
      if ((c.bits & bits) == 0) return p;
      p += c.length;
    }
  }
  const char* contraction(const char* p) const;
  const char* symbols(const char* p) const;
  const char* spaces(const char* p) const;
  const char* word_end(const char* p) const;

  const char* at_;
  const char* end_;
  const UnicodeTable& classes_;
  int digits_;
};

}  // namespace nereid::lm
