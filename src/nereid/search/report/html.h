// Self-contained pages: one file, no scripts, nothing fetched; light and dark as the reader's system is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nereid::search {

// Safe between tags and in quoted attributes. Control characters go.
std::string escaped(std::string_view text);

// At most so many bytes, the last of them an ellipsis where something was cut off. For labels, which are
// ASCII.
std::string shortened(std::string_view text, size_t most);

// A whole page around `body`, which is HTML.
std::string page(std::string_view title, std::string_view body);

struct Bar {
  std::string label{};  // text
  double value = 0;
  std::string text{};  // text after the bar: "12.3 us"
  bool ours = false;   // drawn in the accent
};
// Horizontal bars as SVG, the longest as long as there is room.
std::string bars(const std::vector<Bar>& bars);

}  // namespace nereid::search
