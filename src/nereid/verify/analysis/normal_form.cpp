#include "nereid/verify/analysis/normal_form.h"

namespace nereid::verify {
namespace {

// Where the string that begins at `at` (its quote) ends: one after its closing quote, or the text's end.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool triple = text.substr(at, 3) == std::string(3, quote);
  const std::string close(triple ? 3 : 1, quote);
  for (size_t i = at + close.size(); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, close.size()) == close) {
      return i + close.size();
    } else if (text[i] == '\n' && !triple) {
      return i;
    }
  }
  return text.size();
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Ends the line that `to` is at; an empty one is taken back.
void end_line(std::string& to) {
  while (!to.empty() && is_space(to.back())) to.pop_back();
  if (!to.empty() && to.back() != '\n') to += '\n';
}

}  // namespace

std::string normal_form(std::string_view text) {
  std::string to;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const size_t end = end_of_string(text, i);
      const size_t line = text.find('\n', end);
      const std::string_view behind = text.substr(end, line == text.npos ? text.npos : line - end);
      const bool alone = behind.find_first_not_of(" \t\r") == behind.npos;
      if (!(to.empty() && alone)) to += text.substr(i, end - i);
      i = end;
    } else if (c == '\n') {
      end_line(to);
      ++i;
    } else {
      to += c;
      ++i;
    }
  }
  end_line(to);
  return to;
}

}  // namespace nereid::verify
