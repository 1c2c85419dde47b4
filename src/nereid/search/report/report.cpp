#include "nereid/search/report/report.h"

#include <algorithm>

#include "nereid/search/report/graph_svg.h"
#include "nereid/search/report/html.h"
#include "nereid/search/report/result_file.h"
#include "nereid/search/report/timeline_svg.h"
#include "nereid/trace/notation.h"

namespace nereid::search {
namespace {

std::string label_of(const Judged& judged) {
  return judged.variant.empty() ? judged.proposer : judged.proposer + ", " + judged.variant;
}

std::string tile(const std::string& figure, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(figure), escaped(what));
}

std::string head(const Task& task, const Outcome& outcome, const ReportContext& about) {
  std::string out =
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{} · policy {} · {}</p>\n", escaped(about.reference),
                  escaped(about.hardware), escaped(about.policy), escaped(about.versions));
  const Judged* shown = outcome.best ? &*outcome.best : furthest(outcome);
  if (shown == nullptr) return out + "<p class=\"bad\">No proposer proposed anything.</p>\n";
  out += fmt::format("<p class=\"{}\">{}: {}</p>\n", shown->verified() ? "good" : "bad",
                     to_string(shown->kind), escaped(shown->reason));
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
  list.push_back({.label = "eager PyTorch", .value = eager, .text = milliseconds_text(eager)});
  const auto add = [&](const Judged& judged, const std::string& label, bool ours) {
    if (!judged.verified() || !judged.ms() || judged.times.has_value() != measured) return;
    list.push_back(
        {.label = label,
         .value = *judged.ms(),
         .text = fmt::format("{} ({:.2f}x)", milliseconds_text(*judged.ms()), eager / *judged.ms()),
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

// PyTorch's own ways, and the winner.
std::string as_called(const Outcome& outcome, const Baselines& baselines, const std::string& hardware) {
  if (baselines.empty()) return "";
  std::vector<Bar> list;
  for (const auto& [way, baseline] : baselines)
    if (baseline.call_ms)
      list.push_back({.label = baseline_name(way),
                      .value = *baseline.call_ms,
                      .text = milliseconds_text(*baseline.call_ms),
                      .ours = way == kCandidateName});
  if (const auto ms = outcome.best ? outcome.best->launches_ms() : std::nullopt)
    list.push_back({.label = label_of(*outcome.best) + ", its launches",
                    .value = *ms,
                    .text = milliseconds_text(*ms),
                    .ours = true});
  std::string out = "<h2>As a user calls them, on " + escaped(hardware) + "</h2>\n" + bars(list);
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
        escaped(label_of(judged)), judged.verified() ? "good" : "bad", to_string(judged.kind),
        judged.ms() ? milliseconds_text(*judged.ms()) : "-", escaped(judged.reason.substr(0, 500)));
  for (const auto& declined : outcome.declined)
    out += fmt::format(
        "<tr><td>{}</td><td class=\"soft\">no proposal</td><td class=\"n\">-</td><td "
        "class=\"wide\">{}</td></tr>\n",
        escaped(declined.proposer), escaped(declined.why.substr(0, 500)));
  return out + "</table></div>\n";
}

}  // namespace

std::string report_page(const Task& task, const Outcome& outcome, const ReportContext& about) {
  std::string body =
      head(task, outcome, about) + times(task, outcome) + as_called(outcome, about.baselines, about.hardware);
  const Judged* best = outcome.best ? &*outcome.best : nullptr;
  const auto regions = best != nullptr ? best->regions : std::vector<proposers::Region>();
  body += fmt::format(
      "<h2>The module, and what took its place</h2>\n<div class=\"sides\"><div><p class=\"soft\">PyTorch's "
      "operators{}</p>{}</div>\n",
      regions.empty() ? "" : "; those of one colour became one kernel", graph_svg(task, regions));
  if (best != nullptr && best->work)
    body += "<div><p class=\"soft\">One box a launch; Triton's are framed</p>" +
            steps_svg(*best->work, regions) + "</div>";
  body += "</div>\n";
  if (best != nullptr && best->work) body += kernels(*best->work, "Kernels");
  if (best != nullptr && !best->plan.empty())
    body += "<h2>Plan</h2>\n<pre>" + escaped(best->plan) + "</pre>\n";
  if (const std::string timeline = timeline_svg(outcome.spans, outcome.seconds); !timeline.empty())
    body += "<h2>Writing and judging</h2>\n" + timeline;
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
