#include "nereid/search/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/printable.h"

namespace nereid::search {
namespace {

constexpr std::string_view kStyle =
#include "nereid/search/report/report.css.inc"
    ;

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text, Lines::kMany)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return fmt::format("{}…", text.substr(0, most - 1));
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style></head>\n<body>\n{}</body></html>\n",
      escaped(title), kStyle, body);
}

std::string bars(const std::vector<Bar>& bars) {
  constexpr int kRow = 30, kLabel = 230, kRoom = 420, kText = 250;
  double longest = 0;
  for (const auto& bar : bars) longest = std::max(longest, bar.value);
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n",
                                kLabel + kRoom + kText, kRow * bars.size() + 4, kLabel + kRoom + kText);
  for (size_t i = 0; i < bars.size(); ++i) {
    const double width = longest > 0 ? std::max(2.0, bars[i].value / longest * kRoom) : 2;
    const size_t y = i * kRow + 4;
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"20\" rx=\"3\" style=\"fill:var({})\"/>"
        "<text x=\"{:.1f}\" y=\"{}\" class=\"soft\">{}</text>\n",
        kLabel - 10, y + 15, escaped(shortened(bars[i].label, 34)), kLabel, y, width,
        bars[i].ours ? "--accent" : "--plain", kLabel + width + 8, y + 15, escaped(bars[i].text));
  }
  return out + "</svg>\n";
}

}  // namespace nereid::search
