#include "nereid/cli/pages/runs_page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "nereid/search/report/html.h"

namespace nereid::cli {
namespace {

using Points = std::vector<std::pair<int64_t, double>>;
using search::escaped;

constexpr double kWidth = 560, kHeight = 240, kLeft = 64, kRight = 10, kTop = 10, kBottom = 28;
constexpr size_t kColumns = 250;
// Distinguishable in light and dark mode, and with colour blindness.
constexpr const char* kColours[] = {"#0b7a75", "#d1641f", "#5b61c9", "#b0317f",
                                    "#7d8a1c", "#2b8fd6", "#8a5a2b", "#777777"};
// Of the runs that have a colour a second and a third time.
constexpr const char* kDashes[] = {"", ";stroke-dasharray:6 3", ";stroke-dasharray:2 3"};

std::string line_style(size_t run) {
  return fmt::format("fill:none;stroke:{};stroke-width:1.5{}", kColours[run % std::size(kColours)],
                     kDashes[run / std::size(kColours) % std::size(kDashes)]);
}

// Of each column of the picture the lowest and the highest point, in their order.
Points thinned(const Points& points) {
  if (points.size() <= 2 * kColumns) return points;
  Points kept;
  for (size_t column = 0; column < kColumns; ++column) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(column * points.size() / kColumns);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((column + 1) * points.size() / kColumns);
    auto [low, high] =
        std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

// 1, 2 or 5 times a power of ten: about `count` of them between the ends.
double tick_step(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1, 2, 5})
    if (rough <= step * power) return step * power;
  return 10 * power;
}

struct Frame {
  double low_x, high_x, low_y, high_y;
  double x(double value) const {
    return kLeft + (value - low_x) / (high_x - low_x) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kTop + (high_y - value) / (high_y - low_y) * (kHeight - kTop - kBottom);
  }
};

Frame frame_of(const std::vector<const Points*>& lines) {
  Frame frame{INFINITY, -INFINITY, INFINITY, -INFINITY};
  for (const auto* line : lines)
    for (const auto& [step, value] : *line) {
      frame.low_x = std::min(frame.low_x, static_cast<double>(step)),
      frame.high_x = std::max(frame.high_x, static_cast<double>(step));
      frame.low_y = std::min(frame.low_y, value), frame.high_y = std::max(frame.high_y, value);
    }
  if (frame.high_x <= frame.low_x) frame.high_x = frame.low_x + 1;
  // A curve that never moves is in the middle of its picture.
  const double size = std::max(std::abs(frame.low_y), std::abs(frame.high_y));
  if (frame.high_y - frame.low_y <= 1e-8 * size) {
    const double room = size > 0 ? size / 10 : 1;
    frame.low_y -= room, frame.high_y += room;
  }
  return frame;
}

std::string axes(const Frame& frame) {
  std::string out;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const double across = tick_step(frame.low_y, frame.high_y, 4),
               along = std::max(tick_step(frame.low_x, frame.high_x, 5), 1.0);  // steps are whole
  // As many digits as make two labels different.
  const double largest = std::max(std::abs(frame.low_y), std::abs(frame.high_y));
  const int digits = std::clamp(static_cast<int>(std::ceil(std::log10(largest / across))) + 1, 4, 9);
  for (double value = std::ceil(frame.low_y / across) * across; value <= frame.high_y; value += across)
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" style=\"stroke:var(--line)\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\" class=\"soft\">{5:.{6}g}</text>\n",
        kLeft, right, frame.y(value), kLeft - 6, frame.y(value) + 4,
        std::abs(value) < across / 1e6 ? 0 : value, digits);
  for (double value = std::ceil(frame.low_x / along) * along; value <= frame.high_x; value += along)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" class=\"soft\">{:g}</text>\n",
                       frame.x(value), bottom + 18, value);
  return out;
}

std::string picture(const std::string& figure, const std::vector<RunCurves>& runs) {
  std::vector<const Points*> lines;
  for (const auto& run : runs)
    if (const auto found = run.curves.find(figure); found != run.curves.end() && !found->second.empty())
      lines.push_back(&found->second);
  if (lines.empty()) return "";
  const Frame frame = frame_of(lines);
  std::string out =
      fmt::format("<div><h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                  escaped(figure), kWidth, kHeight, escaped(figure)) +
      axes(frame);
  for (size_t r = 0; r < runs.size(); ++r) {
    const auto found = runs[r].curves.find(figure);
    if (found == runs[r].curves.end()) continue;
    std::string path;
    for (const auto& [step, value] : thinned(found->second))
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", frame.x(static_cast<double>(step)),
                          frame.y(value));
    // A line of one point would not be seen.
    if (found->second.size() == 1)
      out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" style=\"fill:{}\">",
                         path.substr(0, path.find(',')), path.substr(path.find(',') + 1),
                         kColours[r % std::size(kColours)]);
    else
      out += fmt::format("<polyline points=\"{}\" style=\"{}\">", path, line_style(r));
    out += fmt::format("<title>{}: {:.6g} at step {}</title></{}>\n", escaped(runs[r].name),
                       found->second.back().second, found->second.back().first,
                       found->second.size() == 1 ? "circle" : "polyline");
  }
  return out + "</svg></div>\n";
}

std::string rollout_text(const train::RolloutRecord& rollout) {
  std::string head = fmt::format("{}, reward {:g}", rollout.verdict, rollout.reward);
  if (rollout.speedup) head += fmt::format(", {:.2f} times the reference's speed", *rollout.speedup);
  if (rollout.advantage) head += fmt::format(", advantage {:.3g}", *rollout.advantage);
  head += fmt::format(", {} tokens{}, task {} of class {}", rollout.tokens,
                      rollout.cut_off ? " (cut off)" : "", rollout.task, rollout.of_class);
  return fmt::format("<details><summary>{}</summary>\n<p>{}</p>\n<pre>{}</pre></details>\n", escaped(head),
                     escaped(rollout.reason), escaped(rollout.answer));
}

std::string rollouts_of(const RunCurves& run) {
  if (run.rollouts.empty()) return "";
  std::string out =
      fmt::format("<h2>{}: some answers of step {}</h2>\n", escaped(run.name), run.rollouts.front().step);
  for (const auto& rollout : run.rollouts) out += rollout_text(rollout);
  return out;
}

}  // namespace

std::string runs_body(const std::vector<RunCurves>& runs) {
  std::string body = "<p>";
  for (size_t r = 0; r < runs.size(); ++r) {
    body += fmt::format(
        "<span style=\"overflow-wrap:anywhere\"><svg style=\"display:inline-block;width:28px;height:10px\" "
        "viewBox=\"0 0 28 10\">"
        "<line x1=\"0\" x2=\"28\" y1=\"5\" y2=\"5\" style=\"{}\"/></svg> {}</span> &nbsp; ",
        line_style(r), escaped(runs[r].name));
  }
  body += "</p>\n<div class=\"sides\">\n";
  std::set<std::string> figures;
  for (const auto& run : runs)
    for (const auto& [figure, points] : run.curves) figures.insert(figure);
  // What everybody looks at first.
  for (const char* first : {"loss", "held_out_loss", "reward"})
    if (figures.erase(first) > 0) body += picture(first, runs);
  for (const auto& figure : figures) body += picture(figure, runs);
  body += "</div>\n";
  for (const auto& run : runs) body += rollouts_of(run);
  return body;
}

std::string runs_page(const std::vector<RunCurves>& runs) {
  std::string names;
  for (size_t r = 0; r < runs.size(); ++r) names += (r > 0 ? ", " : "") + runs[r].name;
  return search::page(names, fmt::format("<h1>{}</h1>\n{}", escaped(names), runs_body(runs)));
}

}  // namespace nereid::cli
