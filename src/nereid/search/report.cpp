#include "nereid/search/report.h"

#include <algorithm>
#include <map>

#include "nereid/search/html.h"
#include "nereid/search/result_file.h"
#include "nereid/trace/access.h"
#include "nereid/trace/notation.h"

namespace nereid::search {
namespace {

std::string short_name(const std::string& op) {
  const size_t colons = op.find("::");
  const size_t from = colons == op.npos ? 0 : colons + 2;
  return op.substr(from, op.find('.', from) - from);
}

std::string label_of(const Judged& judged) {
  return judged.variant.empty() ? judged.proposer : judged.proposer + ", " + judged.variant;
}

std::string tile(const std::string& figure, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(figure), escaped(what));
}

std::string head(const Task& task, const Outcome& outcome, const ReportAbout& about) {
  std::string out =
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{} · policy {} · {}</p>\n", escaped(about.reference),
                  escaped(about.hardware), escaped(about.policy), escaped(about.versions));
  const Judged* shown = outcome.best ? &*outcome.best : furthest(outcome);
  if (shown == nullptr) return out + "<p class=\"bad\">Nobody proposed anything.</p>\n";
  out += fmt::format("<p class=\"{}\">{}: {}</p>\n", shown->verified() ? "good" : "bad", escaped(shown->word),
                     escaped(shown->reason));
  out += "<div class=\"tiles\">\n" + tile(label_of(*shown), "proposed it");
  if (shown->times) {
    out += tile(fmt::format("{:.2f}x", shown->times->speedup), "eager PyTorch's speed, measured");
    out += tile(milliseconds_text(shown->times->candidate_ms), "a call, measured");
  } else if (shown->work && shown->work->ms > 0) {
    out += tile(fmt::format("{:.2f}x", task.work.ms / shown->work->ms),
                "eager PyTorch's speed by the cost model; not measured");
    out += tile(milliseconds_text(shown->work->ms), "a call, by the cost model of an H200");
  }
  if (shown->work) {
    out +=
        tile(fmt::format("{} → {}", task.work.steps.size(), shown->work->steps.size()), "operators → steps");
    out += tile(fmt::format("{} → {}", trace::quantity_text(task.work.bytes, "B"),
                            trace::quantity_text(shown->work->bytes, "B")),
                "memory traffic");
  }
  return out + "</div>\n";
}

std::string times(const Task& task, const Outcome& outcome) {
  const bool measured = std::any_of(outcome.tried.begin(), outcome.tried.end(),
                                    [](const Judged& j) { return j.times.has_value(); });
  std::vector<Bar> list;
  double eager = task.work.ms;
  if (measured && outcome.best && outcome.best->times) eager = outcome.best->times->reference_ms;
  list.push_back({.label = "eager PyTorch", .value = eager, .told = milliseconds_text(eager)});
  const auto add = [&](const Judged& judged, const std::string& label, bool ours) {
    if (!judged.verified() || !judged.ms() || judged.times.has_value() != measured) return;
    list.push_back(
        {.label = label,
         .value = *judged.ms(),
         .told = fmt::format("{} ({:.2f}x)", milliseconds_text(*judged.ms()), eager / *judged.ms()),
         .ours = ours});
  };
  if (outcome.compiled) add(*outcome.compiled, "torch.compile's kernels", false);
  for (const auto& judged : outcome.tried)
    add(judged, label_of(judged),
        outcome.best && judged.source == outcome.best->source && judged.proposer == outcome.best->proposer);
  return fmt::format("<h2>Time of a call, {}</h2>\n",
                     measured ? "measured" : "by the cost model of an H200") +
         bars(list);
}

// PyTorch's own ways, beside the winner where that was called too.
std::string as_called(const Outcome& outcome, const Baselines& baselines, const std::string& hardware) {
  if (baselines.empty()) return "";
  std::vector<Bar> list;
  for (const auto& [way, baseline] : baselines)
    if (baseline.call_ms)
      list.push_back({.label = baseline_name(way),
                      .value = *baseline.call_ms,
                      .told = milliseconds_text(*baseline.call_ms)});
  if (const auto ms = outcome.best ? outcome.best->launches_ms() : std::nullopt)
    list.push_back({.label = label_of(*outcome.best) + ", its launches",
                    .value = *ms,
                    .told = milliseconds_text(*ms),
                    .ours = true});
  std::string out = "<h2>PyTorch as a user calls it, on " + escaped(hardware) + "</h2>\n" + bars(list);
  for (const auto& [way, baseline] : baselines)
    if (!baseline.call_ms)
      out += fmt::format("<p class=\"soft\">{} was not timed: {}</p>\n", escaped(baseline_name(way)),
                         escaped(baseline.declined));
  return out;
}

std::string kernels(const Work& work, const char* title) {
  std::string out = fmt::format(
      "<h2>{}</h2>\n<div class=\"scroll\"><table><tr><th>step</th><th>by</th><th class=\"n\">bytes</th>"
      "<th class=\"n\">FLOPs</th><th class=\"n\">modelled time</th><th class=\"n\">share of "
      "roofline</th></tr>\n",
      title);
  for (const auto& step : work.steps)
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{:.0f} %</td></tr>\n",
        escaped(step.name), step.triton ? "Triton" : "PyTorch", trace::quantity_text(step.bytes, "B"),
        trace::quantity_text(step.flops, "FLOP"), milliseconds_text(step.ms),
        step.ms > 0 ? 100 * step.roofline_ms / step.ms : 0);
  return out + "</table></div>\n";
}

std::string tried(const Outcome& outcome) {
  std::string out =
      "<h2>What was tried</h2>\n<div class=\"scroll\"><table><tr><th>by</th><th>verdict</th><th "
      "class=\"n\">time</th><th>reason</th></tr>\n";
  for (const auto& judged : outcome.tried)
    out += fmt::format(
        "<tr><td>{}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td><td class=\"wide\">{}</td></tr>\n",
        escaped(label_of(judged)), judged.verified() ? "good" : "bad", escaped(judged.word),
        judged.ms() ? milliseconds_text(*judged.ms()) : "-", escaped(judged.reason.substr(0, 500)));
  for (const auto& declined : outcome.declined)
    out += fmt::format(
        "<tr><td>{}</td><td class=\"soft\">no proposal</td><td class=\"n\">-</td><td "
        "class=\"wide\">{}</td></tr>\n",
        escaped(declined.proposer), escaped(declined.why.substr(0, 500)));
  return out + "</table></div>\n";
}

// The winner's steps one below the other, its kernels in the accent.
std::string steps_svg(const Work& work) {
  constexpr int kWidth = 300, kHeight = 34, kGap = 16;
  const size_t count = std::min<size_t>(work.steps.size(), 60);
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n", kWidth,
                                count * (kHeight + kGap) + 4, kWidth);
  for (size_t i = 0; i < count; ++i) {
    const size_t y = i * (kHeight + kGap) + 2;
    if (i > 0)
      out += fmt::format("<path d=\"M{} {}v{}\" style=\"stroke:var(--plain);fill:none\"/>\n", kWidth / 2,
                         y - kGap, kGap);
    const std::string name = short_name(work.steps[i].name);
    out += fmt::format(
        "<rect x=\"2\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" "
        "style=\"fill:var(--card);stroke:var({});stroke-width:{}\"/>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        y, kWidth - 4, kHeight, work.steps[i].triton ? "--accent" : "--line", work.steps[i].triton ? 2 : 1,
        kWidth / 2, y + 22, escaped(shortened(name, 38)));
  }
  out += "</svg>\n";
  if (count < work.steps.size())
    out += fmt::format("<p class=\"soft\">and {} more</p>\n", work.steps.size() - count);
  return out;
}

}  // namespace

std::string graph_svg(const Task& task, size_t most) {
  constexpr int kWidth = 150, kHeight = 32, kAcross = 14, kDown = 26;
  const auto& trace = task.trace;
  const auto& forward = trace.phases[static_cast<size_t>(task.facts.judged())];
  struct Box {
    std::string name;
    size_t row = 0, column = 0;
    std::vector<size_t> from;
  };
  std::vector<Box> boxes;
  std::map<trace::StorageId, size_t> maker;
  size_t left_out = 0;
  for (const auto& step : forward.steps) {
    const auto access = trace::access_of(
        trace, step, [](const trace::Kernel&) { return std::vector<trace::ParameterUse>(); });
    if (access.writes.empty()) continue;
    if (boxes.size() == most) {
      ++left_out;
      continue;
    }
    Box box;
    if (const auto* call = std::get_if<trace::Call>(&step))
      box.name = short_name(call->op);
    else
      box.name =
          trace.kernels[static_cast<size_t>(std::get<trace::Launch>(step).alternatives.front().kernel)].name;
    for (const auto& read : access.reads)
      if (const auto found = maker.find(read.storage); found != maker.end()) {
        if (std::find(box.from.begin(), box.from.end(), found->second) == box.from.end())
          box.from.push_back(found->second);
        box.row = std::max(box.row, boxes[found->second].row + 1);
      }
    for (const auto& write : access.writes) maker[write.storage] = boxes.size();
    boxes.push_back(std::move(box));
  }
  std::map<size_t, size_t> columns;
  size_t widest = 1, rows = 0;
  for (auto& box : boxes) {
    box.column = columns[box.row]++;
    widest = std::max(widest, box.column + 1), rows = std::max(rows, box.row + 1);
  }
  const size_t width = widest * (kWidth + kAcross), height = rows * (kHeight + kDown) + 4;
  // Each row stands in the middle.
  const auto x_of = [&](const Box& box) {
    const double row_width = static_cast<double>(columns.at(box.row) * (kWidth + kAcross));
    return (static_cast<double>(width) - row_width) / 2 +
           static_cast<double>(box.column * (kWidth + kAcross)) + kAcross / 2.0;
  };
  const auto y_of = [&](const Box& box) { return static_cast<double>(box.row * (kHeight + kDown)) + 2; };
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n", width, height, width);
  for (const auto& box : boxes)
    for (const size_t from : box.from) {
      const double x0 = x_of(boxes[from]) + kWidth / 2.0, y0 = y_of(boxes[from]) + kHeight,
                   x1 = x_of(box) + kWidth / 2.0, y1 = y_of(box);
      out += fmt::format(
          "<path d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\" "
          "style=\"stroke:var(--plain);fill:none\"/>\n",
          x0, y0, x0, y0 + kDown, x1, y1 - kDown, x1, y1);
    }
  for (const auto& box : boxes)
    out += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" rx=\"6\" "
        "style=\"fill:var(--card);stroke:var(--line)\"/>"
        "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
        x_of(box), y_of(box), kWidth, kHeight, x_of(box) + kWidth / 2.0, y_of(box) + 21,
        escaped(shortened(box.name, 19)));
  out += "</svg>\n";
  if (left_out > 0) out += fmt::format("<p class=\"soft\">and {} more steps</p>\n", left_out);
  return out;
}

std::string report_page(const Task& task, const Outcome& outcome, const ReportAbout& about) {
  std::string body =
      head(task, outcome, about) + times(task, outcome) + as_called(outcome, about.baselines, about.hardware);
  const Judged* best = outcome.best ? &*outcome.best : nullptr;
  body +=
      "<h2>The module, and what took its place</h2>\n<div class=\"sides\"><div><p class=\"soft\">PyTorch's "
      "operators</p>" +
      graph_svg(task) + "</div>\n";
  if (best != nullptr && best->work)
    body += "<div><p class=\"soft\">One box a launch; Triton's are framed</p>" + steps_svg(*best->work) +
            "</div>";
  body += "</div>\n";
  if (best != nullptr && best->work) body += kernels(*best->work, "Kernels");
  if (best != nullptr && !best->plan.empty())
    body += "<h2>Plan</h2>\n<pre>" + escaped(best->plan) + "</pre>\n";
  body += tried(outcome);
  const Judged* shown = best != nullptr ? best : furthest(outcome);
  body += "<h2>Source</h2>\n<div class=\"sides\"><div><p class=\"soft\">" + escaped(about.reference) +
          "</p><pre>" + escaped(task.source) + "</pre></div>\n";
  if (shown != nullptr)
    body += "<div><p class=\"soft\">" + escaped(label_of(*shown)) + "</p><pre>" + escaped(shown->source) +
            "</pre></div>";
  body += "</div>\n";
  if (shown != nullptr) body += "<h2>Verdict</h2>\n<pre>" + escaped(shown->evidence) + "</pre>\n";
  return page("nereid optimize: " + about.reference, body);
}

}  // namespace nereid::search
