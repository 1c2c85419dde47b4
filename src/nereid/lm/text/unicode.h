// What the regular expressions and the normalizer of tokenizers ask about a code point, in a table of one
// byte each.
//
// The answers are those of the `tokenizers` package, which takes them from three libraries with Unicode
// versions of their own: letters and numbers are Unicode 16's, normal forms Unicode 9's. Ours come from
// utf8proc (Unicode 15), with what differs listed in unicode.cpp; tests/tokenizer_test.py asks both sides
// about every code point.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nereid/lm/text/utf8.h"

namespace nereid::lm {

enum UnicodeClass : uint8_t {
  kLetter = 1,         // \p{L}
  kNumber = 2,         // \p{N}
  kSpace = 4,          // \s: White_Space
  kWordCharacter = 8,  // \w as added tokens' `single_word` means it
  kUnsettled = 16,     // NFC may change it, or what stands before it
  kUnknownMark = 32,   // younger than the normalizer's tables: nothing is moved across it or composed with it
};

// Above these are private use, and of what has a class here the variation selectors alone.
inline constexpr uint32_t kUnicodeTableSize = 0x40000;
using UnicodeTable = std::array<uint8_t, kUnicodeTableSize>;

// Made at the first call (milliseconds), so that programs which tokenize nothing do not pay for it.
const UnicodeTable& unicode_table();

inline uint8_t unicode_class(const UnicodeTable& table, uint32_t code_point) {
  if (code_point < kUnicodeTableSize) [[likely]]
    return table[code_point];
  return code_point >= 0xE0100 && code_point <= 0xE01EF ? kWordCharacter : 0;
}

struct CodePointRange {
  uint32_t first, last;
};
struct RecentRange {
  uint32_t first, last;
  const char* category;  // "Lu"
};
// What Unicode 15 and 16 brought, which PCRE2 10.42 does not know.
std::span<const RecentRange> recent_ranges();

// Appends the Unicode normal form C of `text`, which is valid UTF-8, to `out`.
void append_nfc(std::string_view text, std::string& out);
// False only where append_nfc would give `text` itself.
bool may_need_nfc(std::string_view text);

}  // namespace nereid::lm
