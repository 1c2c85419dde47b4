#include "nereid/lm/text/word_scanner.h"

namespace nereid::lm {

std::string_view WordScanner::next() {
  const char* begin = at_;
  at_ = word_end(begin);
  return {begin, static_cast<size_t>(at_ - begin)};
}

const char* WordScanner::word_end(const char* p) const {
  const Character c = look(p);
  if (c.bits & kLetter) return skip(p + c.length, kLetter);
  if (c.bits & kNumber) {
    const char* end = p + c.length;
    for (int n = 1; n < digits_; ++n) {
      const Character digit = look(end);
      if ((digit.bits & kNumber) == 0) break;
      end += digit.length;
    }
    return end;
  }
  if (*p == '\'') {
    if (const char* end = contraction(p)) return end;
  }
  const Character after = look(p + c.length);
  const bool line_end = *p == '\n' || *p == '\r';
  if ((after.bits & kLetter) && !line_end) return skip(p + c.length + after.length, kLetter);
  if ((c.bits & kSpace) == 0) return symbols(p + c.length);
  const bool symbol_after = after.length > 0 && (after.bits & (kLetter | kNumber | kSpace)) == 0;
  if (*p == ' ' && symbol_after) return symbols(p + 1 + after.length);
  return spaces(p);
}

// The end of 's, 't, 're, 've, 'm, 'll, 'd in either case (and of 'ſ, whose capital is S), or nullptr.
const char* WordScanner::contraction(const char* p) const {
  const auto letter = [this](const char* at) {
    return at < end_ ? static_cast<unsigned char>(*at | 0x20) : 0;
  };
  switch (letter(p + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return letter(p + 2) == 'e' ? p + 3 : nullptr;
    case 'l':
      return letter(p + 2) == 'l' ? p + 3 : nullptr;
    default:
      return end_ - p >= 3 && p[1] == '\xC5' && p[2] == '\xBF' ? p + 3 : nullptr;
  }
}

const char* WordScanner::symbols(const char* p) const {
  while (true) {
    const Character c = look(p);
    if (c.length == 0 || (c.bits & (kLetter | kNumber | kSpace))) break;
    p += c.length;
  }
  while (p != end_ && (*p == '\n' || *p == '\r')) ++p;
  return p;
}

// White space that goes to its last line end; else all of it, but for the last one where a word follows.
const char* WordScanner::spaces(const char* p) const {
  const char* last = p;
  const char* line_end = nullptr;
  const char* end = p;
  while (true) {
    const Character c = look(end);
    if ((c.bits & kSpace) == 0) break;
    if (*end == '\n' || *end == '\r') line_end = end + 1;
    last = end;
    end += c.length;
  }
  if (line_end != nullptr) return line_end;
  return end == end_ || last == p ? end : last;
}

}  // namespace nereid::lm
