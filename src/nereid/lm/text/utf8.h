// UTF-8, one code point at a time, and broken UTF-8 as Python's bytes.decode("utf-8", "replace") reads it:
// every longest piece that could begin a character but does not (Unicode 3.9, "maximal subpart"), and every
// byte that cannot, is one U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::lm {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What the text begins with. `text` must not be empty.
struct Utf8Step {
  enum Kind { kCharacter, kBroken, kCut } kind;  // kCut: all of `text` begins a character that is longer
  uint32_t length;                               // bytes
};
Utf8Step utf8_step(std::string_view text);

bool is_utf8(std::string_view bytes);
// Appends `bytes` to `out`, what is broken replaced.
void append_lossy(std::string_view bytes, std::string& out);
void append_code_point(uint32_t code_point, std::string& out);

struct CodePoint {
  uint32_t value;
  uint32_t length;  // bytes
};

// The first character of valid UTF-8 that is not empty.
inline CodePoint first_code_point(const char* text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text);
  const uint32_t b0 = p[0];
  if (b0 < 0x80) return {b0, 1};
  if (b0 < 0xE0) return {(b0 & 0x1F) << 6 | (p[1] & 0x3Fu), 2};
  if (b0 < 0xF0) return {(b0 & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu), 3};
  return {(b0 & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu), 4};
}

// The same for the last one.
inline CodePoint last_code_point(std::string_view text) {
  size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return first_code_point(text.data() + at);
}

}  // namespace nereid::lm
