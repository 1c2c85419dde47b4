#include "nereid/lm/text/utf8.h"

#include <cstring>

namespace nereid::lm {

Utf8Step utf8_step(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned b0 = p[0];
  if (b0 < 0x80) return {Utf8Step::kCharacter, 1};
  // The second byte's range keeps out overlong forms, surrogates, and what is above U+10FFFF.
  unsigned lowest = 0x80, highest = 0xBF;
  uint32_t length = 0;
  if (b0 >= 0xC2 && b0 <= 0xDF) {
    length = 2;
  } else if (b0 >= 0xE0 && b0 <= 0xEF) {
    length = 3;
    if (b0 == 0xE0) lowest = 0xA0;
    if (b0 == 0xED) highest = 0x9F;
  } else if (b0 >= 0xF0 && b0 <= 0xF4) {
    length = 4;
    if (b0 == 0xF0) lowest = 0x90;
    if (b0 == 0xF4) highest = 0x8F;
  } else {
    return {Utf8Step::kBroken, 1};
  }
  for (uint32_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Step::kCut, i};
    if (p[i] < lowest || p[i] > highest) return {Utf8Step::kBroken, i};
    lowest = 0x80, highest = 0xBF;
  }
  return {Utf8Step::kCharacter, length};
}

namespace {

// How many bytes of valid UTF-8 `bytes` begins with.
size_t valid_prefix(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at >= 8) {
      uint64_t eight = 0;
      std::memcpy(&eight, bytes.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Utf8Step step = utf8_step(bytes.substr(at));
    if (step.kind != Utf8Step::kCharacter) break;
    at += step.length;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) { return valid_prefix(bytes) == bytes.size(); }

void append_lossy(std::string_view bytes, std::string& out) {
  while (true) {
    const size_t valid = valid_prefix(bytes);
    out.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) return;
    out.append(kReplacement);
    bytes.remove_prefix(utf8_step(bytes).length);
  }
}

void append_code_point(uint32_t c, std::string& out) {
  const auto byte = [&out](uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
        byte(0x80 | (c & 0x3F));
  }
}

}  // namespace nereid::lm
