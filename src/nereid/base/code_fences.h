// Lines that open and close code blocks, fenced as in CommonMark, and the languages that they name.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "nereid/base/text.h"

namespace nereid {

struct Fence {
  size_t indent = 0, length = 0;
  char mark = 0;
  std::string_view info;  // what stands after the marks
};

inline std::optional<Fence> fence_at(std::string_view line) {
  Fence fence;
  while (fence.indent < line.size() && line[fence.indent] == ' ') ++fence.indent;
  std::string_view rest = line.substr(fence.indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return std::nullopt;
  fence.mark = rest[0];
  fence.length = std::min(rest.find_first_not_of(fence.mark), rest.size());
  fence.info = trimmed(rest.substr(fence.length));
  if (fence.length < 3) return std::nullopt;
  if (fence.mark == '`' && fence.info.find('`') != std::string_view::npos)
    return std::nullopt;  // inline code
  return fence;
}

enum class Language { kPython, kUnspecified, kOther };

inline Language language_of(std::string_view info) {
  std::string word;
  for (const char c : info) {
    if (c == ' ' || c == '{' || c == ',' || c == ':') {
      if (!word.empty()) break;
    } else if (c != '.' && c != '}') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (word.empty()) return Language::kUnspecified;
  constexpr std::array<std::string_view, 5> kPython = {"python", "py", "python3", "triton", "python-triton"};
  return std::find(kPython.begin(), kPython.end(), word) != kPython.end() ? Language::kPython
                                                                          : Language::kOther;
}

// Follows triple quotes through a block, so that a fence inside a docstring stays text.
class TripleQuotes {
 public:
  bool open() const { return quote_ != 0; }
  void read(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool triple = (c == '"' || c == '\'') && line.substr(i).starts_with(std::string(3, c));
      if (open()) {
        if (c == '\\') ++i;
        if (c == quote_ && triple) quote_ = 0, i += 2;
      } else if (triple) {
        quote_ = c, i += 2;
      } else if (c == '#') {
        return;
      } else if (c == '"' || c == '\'') {
        for (++i; i < line.size() && line[i] != c; ++i)
          if (line[i] == '\\') ++i;
      }
    }
  }

 private:
  char quote_ = 0;
};

}  // namespace nereid
