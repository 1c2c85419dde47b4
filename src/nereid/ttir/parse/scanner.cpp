#include "nereid/ttir/parse/scanner.h"

#include <fmt/format.h>

#include <cctype>

namespace nereid::ttir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool Scanner::fail(const std::string& what) {
  if (failed_) return false;
  failed_ = true;
  size_t start = position_ == 0 ? std::string_view::npos : text_.rfind('\n', position_ - 1);
  start = start == std::string_view::npos ? 0 : start + 1;
  message_ = fmt::format("TTIR line {}, column {}: {}", line(), position_ - start + 1, what);
  return false;
}

bool Scanner::unsupported(const std::string& what) {
  if (failed_) return false;
  failed_ = true;
  message_ = fmt::format("Unsupported: {} (TTIR line {})", what, line());
  return false;
}

int Scanner::line() const {
  int line = 1;
  for (size_t i = 0; i < position_ && i < text_.size(); ++i) line += text_[i] == '\n';
  return line;
}

void Scanner::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '/' && position_ + 1 < text_.size() && text_[position_ + 1] == '/') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip_blanks();
  return position_ >= text_.size();
}

bool Scanner::peek(std::string_view word) {
  if (failed_) return false;
  skip_blanks();
  if (text_.substr(position_, word.size()) != word) return false;
  const size_t after = position_ + word.size();
  return !(is_word(word.back()) && after < text_.size() && is_word(text_[after]));
}

char Scanner::peek_char() {
  if (failed_) return '\0';
  skip_blanks();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool Scanner::accept(std::string_view word) {
  if (!peek(word)) return false;
  position_ += word.size();
  return true;
}

bool Scanner::expect(std::string_view word) {
  if (accept(word)) return true;
  const char next = peek_char();
  return fail(next == '\0' ? fmt::format("expected '{}', the text ends", word)
                           : fmt::format("expected '{}', got '{}'", word, next));
}

std::optional<std::string> Scanner::identifier() {
  if (failed_) return std::nullopt;
  skip_blanks();
  size_t end = position_;
  if (end < text_.size() && is_letter(text_[end]))
    while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == position_) {
    fail("expected a name");
    return std::nullopt;
  }
  std::string name(text_.substr(position_, end - position_));
  position_ = end;
  return name;
}

std::optional<std::string> Scanner::suffix_identifier(char sigil) {
  if (failed_) return std::nullopt;
  skip_blanks();
  if (position_ >= text_.size() || text_[position_] != sigil) {
    fail(fmt::format("expected a name that begins with '{}'", sigil));
    return std::nullopt;
  }
  ++position_;
  if (sigil == '@' && position_ < text_.size() && text_[position_] == '"') return quoted();
  size_t end = position_;
  while (end < text_.size() && (is_word(text_[end]) || text_[end] == '-')) {
    // `%c-1_i32` is one name, `%x->` is not.
    if (text_[end] == '-' && (end + 1 >= text_.size() || !is_word(text_[end + 1]))) break;
    ++end;
  }
  if (end == position_) {
    fail("expected a name");
    return std::nullopt;
  }
  std::string name(text_.substr(position_, end - position_));
  position_ = end;
  return name;
}

std::optional<std::string> Scanner::quoted() {
  if (!expect("\"")) return std::nullopt;
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    char c = text_[position_++];
    if (c == '\\' && position_ < text_.size()) {
      const char escape = text_[position_];
      if (position_ + 1 < text_.size() && hex_digit(escape) >= 0 && hex_digit(text_[position_ + 1]) >= 0) {
        c = static_cast<char>(16 * hex_digit(escape) + hex_digit(text_[position_ + 1]));
        position_ += 2;
      } else {
        c = escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
        ++position_;
      }
    }
    value += c;
  }
  if (position_ >= text_.size()) {
    fail("a string without an end");
    return std::nullopt;
  }
  ++position_;
  return value;
}

std::optional<std::string_view> Scanner::number() {
  if (failed_) return std::nullopt;
  skip_blanks();
  size_t end = position_;
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
  const size_t digits = end;
  if (text_.substr(end, 2) == "0x") {
    end += 2;
    while (end < text_.size() && hex_digit(text_[end]) >= 0) ++end;
  } else {
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end > digits && end < text_.size() && text_[end] == '.') {
      ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
    }
    if (end > digits && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      ++end;
      if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
    }
  }
  if (end == digits) {
    fail("expected a number");
    return std::nullopt;
  }
  const auto number = text_.substr(position_, end - position_);
  position_ = end;
  return number;
}

std::optional<int64_t> Scanner::integer() {
  const auto text = number();
  if (!text) return std::nullopt;
  size_t i = (*text)[0] == '-' || (*text)[0] == '+' ? 1 : 0;
  const bool negative = (*text)[0] == '-';
  uint64_t value = 0;
  if (text->substr(i, 2) == "0x") {
    for (i += 2; i < text->size(); ++i) value = value * 16 + static_cast<uint64_t>(hex_digit((*text)[i]));
  } else {
    for (; i < text->size(); ++i) {
      if (!is_digit((*text)[i])) {
        fail(fmt::format("expected an integer, got {}", *text));
        return std::nullopt;
      }
      value = value * 10 + static_cast<uint64_t>((*text)[i] - '0');
    }
  }
  return static_cast<int64_t>(negative ? -value : value);
}

std::optional<int64_t> Scanner::dimension() {
  if (failed_) return std::nullopt;
  skip_blanks();
  size_t end = position_;
  int64_t value = 0;
  while (end < text_.size() && is_digit(text_[end]) && value < (int64_t{1} << 40))
    value = value * 10 + (text_[end++] - '0');
  if (end == position_ || end >= text_.size() || text_[end] != 'x') return std::nullopt;
  position_ = end + 1;
  return value;
}

std::optional<std::string_view> Scanner::balanced() {
  if (failed_) return std::nullopt;
  skip_blanks();
  const size_t start = position_;
  std::string closers;
  for (size_t i = position_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '"') {
      for (++i; i < text_.size() && text_[i] != '"'; ++i) i += text_[i] == '\\';
    } else if (c == '<') {
      closers += '>';
    } else if (c == '(') {
      closers += ')';
    } else if (c == '[') {
      closers += ']';
    } else if (c == '{') {
      closers += '}';
    } else if (!closers.empty() && c == closers.back()) {
      closers.pop_back();
      if (closers.empty()) {
        position_ = i + 1;
        return text_.substr(start, position_ - start);
      }
    }
    if (closers.empty()) break;
  }
  fail("brackets without their end");
  return std::nullopt;
}

}  // namespace nereid::ttir
