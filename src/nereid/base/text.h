// What several readers of text need.
#pragma once

#include <cctype>
#include <string_view>

namespace nereid {

// Without the white space at both ends.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

}  // namespace nereid
