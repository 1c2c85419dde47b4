#include "nereid/render/python_tokens.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace nereid::render {

using std::string_view;

bool name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

namespace {

size_t token_end(string_view text, size_t at) {
  const char c = text[at];
  size_t end = at + 1;
  if (c == '#') return std::min(text.find('\n', at), text.size());
  if (c == '"' || c == '\'') {
    const std::string three(3, c);
    const string_view quotes = text.substr(at).starts_with(three) ? string_view(three) : text.substr(at, 1);
    for (end = at + quotes.size(); end < text.size() && !text.substr(end).starts_with(quotes); ++end)
      if (text[end] == '\\') ++end;
    return std::min(end + quotes.size(), text.size());
  }
  if (!name_character(c)) return end;
  const bool number = is_decimal(c), hexadecimal = text.substr(at, 2) == "0x";
  const auto exponent_sign = [&] {
    const char before = text[end - 1];
    return number && !hexadecimal && (before == 'e' || before == 'E') &&
           (text[end] == '-' || text[end] == '+');
  };
  while (end < text.size() && (name_character(text[end]) || (number && text[end] == '.') || exponent_sign()))
    ++end;
  return end;
}

}  // namespace

std::vector<string_view> tokens_of(string_view text) {
  std::vector<string_view> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t end = token_end(text, at);
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

}  // namespace nereid::render
