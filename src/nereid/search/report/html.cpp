#include "nereid/search/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/printable.h"

namespace nereid::search {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --paper: #fff; --card: #f6f8fa; --accent: #0b7a75;
  --plain: #9aa7b6; --bad: #b3261e; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --soft: #9aa6b5; --line: #323b47; --paper: #12161c; --card: #1a2028;
  --accent: #3fb6af; --plain: #5d6b7c; --bad: #ff8a80; --good: #56d364; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); } .good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
.tile { flex: 1 1 9rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.35rem; } .tile span { color: var(--soft); font-size: .85rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .38rem .75rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
tr:last-child td { border-bottom: 0; } th { background: var(--card); font-weight: 600; } td.n, th.n { text-align: right; }
td.wide { white-space: normal; min-width: 18rem; }
pre { margin: 0; padding: .8rem 1rem; overflow: auto; max-height: 40rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; tab-size: 4; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; } .sides > div { min-width: 0; }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
)";

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
