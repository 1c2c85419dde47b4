#include "nereid/search/report/graph_svg.h"

#include <algorithm>
#include <map>

#include "nereid/search/report/html.h"
#include "nereid/trace/access.h"

namespace nereid::search {
namespace {

std::string short_name(const std::string& op) {
  const size_t colons = op.find("::");
  const size_t from = colons == op.npos ? 0 : colons + 2;
  return op.substr(from, op.find('.', from) - from);
}

// Far from its neighbours' on the wheel of hues, and different from background and text in either scheme.
std::string colour(int region, int opacity) {
  return fmt::format("hsl({} 62% 48% / {}%)", region * 137 % 360, opacity);
}

std::string badge(int region, double x, double y) {
  return fmt::format(
      "<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"9\" style=\"fill:{}\"/><text x=\"{:.0f}\" y=\"{:.0f}\" "
      "text-anchor=\"middle\" style=\"fill:#fff;font-size:11px\">{}</text>\n",
      x, y, colour(region, 100), x, y + 4, region + 1);
}

constexpr int kWidth = 150, kHeight = 32, kAcross = 14, kDown = 26;

struct Box {
  std::string name{};
  int region = -1;
  size_t row = 0, column = 0;
  std::vector<size_t> from{};
  double x = 0, y = 0;
};

struct Layout {
  std::vector<Box> boxes{};
  size_t left_out = 0;
  size_t width = 0, height = 0;
};

std::string name_of(const trace::Trace& trace, const trace::Step& step) {
  if (const auto* call = std::get_if<trace::Call>(&step)) return short_name(call->op);
  const auto& launch = std::get<trace::Launch>(step);
  return trace.kernels[static_cast<size_t>(launch.alternatives.front().kernel)].name;
}

// Each row stands in the middle.
void place(Layout& layout) {
  std::map<size_t, size_t> columns;
  size_t widest = 1, rows = 0;
  for (auto& box : layout.boxes) {
    box.column = columns[box.row]++;
    widest = std::max(widest, box.column + 1), rows = std::max(rows, box.row + 1);
  }
  layout.width = widest * (kWidth + kAcross), layout.height = rows * (kHeight + kDown) + 4;
  for (auto& box : layout.boxes) {
    const auto row_width = static_cast<double>(columns.at(box.row) * (kWidth + kAcross));
    box.x = (static_cast<double>(layout.width) - row_width) / 2 +
            static_cast<double>(box.column * (kWidth + kAcross)) + kAcross / 2.0;
    box.y = static_cast<double>(box.row * (kHeight + kDown)) + 10;
  }
}

Layout lay_out(const Task& task, const std::vector<proposers::Region>& regions, size_t most) {
  const auto& trace = task.trace;
  std::map<size_t, int> region_of;  // the first that does a step
  for (size_t r = 0; r < regions.size(); ++r)
    for (const int step : regions[r].steps)
      region_of.try_emplace(static_cast<size_t>(step), static_cast<int>(r));
  Layout layout;
  std::map<trace::StorageId, size_t> maker;
  const auto& steps = trace.phases[static_cast<size_t>(task.facts.judged())].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto access = trace::access_of(
        trace, steps[i], [](const trace::Kernel&) { return std::vector<trace::ParameterUse>(); });
    if (access.writes.empty()) continue;
    if (layout.boxes.size() == most) {
      ++layout.left_out;
      continue;
    }
    Box box{.name = name_of(trace, steps[i])};
    if (const auto found = region_of.find(i); found != region_of.end()) box.region = found->second;
    for (const auto& read : access.reads)
      if (const auto found = maker.find(read.storage); found != maker.end()) {
        if (std::find(box.from.begin(), box.from.end(), found->second) == box.from.end())
          box.from.push_back(found->second);
        box.row = std::max(box.row, layout.boxes[found->second].row + 1);
      }
    for (const auto& write : access.writes) maker[write.storage] = layout.boxes.size();
    layout.boxes.push_back(std::move(box));
  }
  place(layout);
  return layout;
}

std::string edge(const Box& a, const Box& b, const std::string& style) {
  const double x0 = a.x + kWidth / 2.0, y0 = a.y + kHeight, x1 = b.x + kWidth / 2.0, y1 = b.y;
  return fmt::format(
      "<path d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\" style=\"fill:none;{}\"/>\n", x0,
      y0, x0, y0 + kDown, x1, y1 - kDown, x1, y1, style);
}

std::string rectangle(double x, double y, int width, int height, const std::string& style) {
  return fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" rx=\"6\" style=\"{}\"/>\n",
                     x, y, width, height, style);
}

std::string label(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n", x, y,
                     escaped(text));
}

std::string svg(size_t width, size_t height, const std::string& body) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n{}</svg>\n", width, height,
                     width, body);
}

}  // namespace

std::string graph_svg(const Task& task, const std::vector<proposers::Region>& regions, size_t most) {
  const Layout layout = lay_out(task, regions, most);
  std::string bands, edges, boxes;
  for (const auto& box : layout.boxes) {
    const bool fused = box.region >= 0;
    for (const size_t index : box.from) {
      const Box& from = layout.boxes[index];
      if (fused && from.region == box.region)
        bands +=
            edge(from, box, fmt::format("stroke:{};stroke-width:{}", colour(box.region, 30), kWidth / 2));
      edges += edge(from, box, "stroke:var(--plain)");
    }
    boxes += rectangle(box.x, box.y, kWidth, kHeight, "fill:var(--card);stroke:var(--line)");
    if (fused)
      boxes += rectangle(box.x, box.y, kWidth, kHeight,
                         fmt::format("fill:{};stroke:{}", colour(box.region, 22), colour(box.region, 100)));
    boxes += label(box.x + kWidth / 2.0, box.y + 21, shortened(box.name, 19));
    if (fused) boxes += badge(box.region, box.x + 4, box.y + 2);
  }
  std::string out = svg(layout.width, layout.height + 8, bands + edges + boxes);
  if (layout.left_out > 0) out += fmt::format("<p class=\"soft\">and {} more steps</p>\n", layout.left_out);
  return out;
}

std::string steps_svg(const Work& work, const std::vector<proposers::Region>& regions) {
  constexpr int kWide = 320, kGap = 16;
  constexpr size_t kMost = 60;
  std::string body;
  double y = 10;
  const size_t count = std::min(work.steps.size(), kMost);
  for (size_t i = 0; i < count; ++i, y += kHeight + kGap) {
    const auto& step = work.steps[i];
    const auto found = std::find_if(regions.begin(), regions.end(),
                                    [&](const proposers::Region& r) { return r.kernel == step.name; });
    const auto region = static_cast<int>(found - regions.begin());
    const bool known = found != regions.end();
    if (i > 0)
      body += fmt::format("<path d=\"M{} {:.0f}v{}\" style=\"stroke:var(--plain);fill:none\"/>\n", kWide / 2,
                          y - kGap, kGap);
    body +=
        rectangle(10, y, kWide - 12, kHeight,
                  fmt::format("fill:{};stroke:{};stroke-width:{}", known ? colour(region, 22) : "var(--card)",
                              known         ? colour(region, 100)
                              : step.triton ? "var(--accent)"
                                            : "var(--line)",
                              step.triton ? 2 : 1));
    body += label(kWide / 2.0 + 4, y + 21, shortened(short_name(step.name), 38));
    if (known) body += badge(region, 12, y + 2);
  }
  std::string out = svg(kWide, static_cast<size_t>(y) + 4, body);
  if (count < work.steps.size())
    out += fmt::format("<p class=\"soft\">and {} more</p>\n", work.steps.size() - count);
  return out;
}

}  // namespace nereid::search
