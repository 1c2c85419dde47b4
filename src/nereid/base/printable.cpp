#include "nereid/base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace nereid {
namespace {

struct Decoded {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: no UTF-8 begins here
};

Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || surrogate || code > 0x10ffff ? Decoded{} : Decoded{code, bytes};
}

struct Range {
  uint32_t first, last;
};
// Beyond ASCII: controls, and the characters of Unicode's category Cf, Zl and Zp that terminals and browsers
// obey or hide; invisible fillers; what no standard names.
constexpr Range kUnseen[] = {{0x80, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
                             {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
                             {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},   {0xe000, 0xf8ff},
                             {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
                             {0xfffe, 0xffff},   {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
                             {0xf0000, 0x10ffff}};

bool is_unseen(uint32_t code) {
  if (code < 0x20 || code == 0x7f) return true;
  for (const Range& range : kUnseen)
    if (code >= range.first && code <= range.last) return true;
  return false;
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded at = decode(text);
    const size_t bytes = at.bytes == 0 ? 1 : at.bytes;
    if (at.bytes == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (at.code == '\t' || (at.code == '\n' && lines == Lines::kMany) || !is_unseen(at.code)) {
      out += text.substr(0, bytes);
    } else if (at.code == '\n' || at.code == '\r') {
      out += at.code == '\n' ? "\\n" : "\\r";
    } else if (at.code < 0x100) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", at.code);
    } else if (at.code < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", at.code);
    } else {
      fmt::format_to(std::back_inserter(out), "\\U{:08x}", at.code);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string printable_json(std::string_view document) {
  std::string out;
  out.reserve(document.size());
  while (!document.empty()) {
    const Decoded at = decode(document);
    const size_t bytes = at.bytes == 0 ? 1 : at.bytes;
    // Below 0x20 a document has nothing but the white space between its values.
    if (at.bytes == 0 || at.code < 0x20 || !is_unseen(at.code)) {
      out += document.substr(0, bytes);
    } else if (at.code < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", at.code);
    } else {
      const uint32_t rest = at.code - 0x10000;
      fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10),
                     0xdc00 + (rest & 0x3ff));
    }
    document.remove_prefix(bytes);
  }
  return out;
}

}  // namespace nereid
