#include "nereid/eval/page.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "nereid/search/report/html.h"
#include "nereid/search/report/result_file.h"
#include "nereid/trace/notation.h"

namespace nereid::eval {
namespace {

using search::escaped;

std::string times_text(const std::optional<double>& speedup) {
  return speedup ? fmt::format("{:.2f}x", *speedup) : "-";
}
std::string ms_text(const std::optional<double>& ms) { return ms ? search::milliseconds_text(*ms) : "-"; }

// The speed-up over a baseline, or that it timed out.
std::string over_text(const TaskResult& r, const char* mode, const std::optional<double>& speedup) {
  const auto found = r.compared.baselines.find(mode);
  return found != r.compared.baselines.end() && found->second.timed_out ? "timed out" : times_text(speedup);
}

// Sorted by milliseconds beyond the roofline, most first; tasks without a verified result before all others.
std::vector<const TaskResult*> by_headroom(const std::vector<TaskResult>& results) {
  const auto left = [](const TaskResult* r) {
    if (r->verdict != verify::VerdictKind::kVerified) return std::numeric_limits<double>::infinity();
    return r->score.roofline && r->candidate_ms ? *r->candidate_ms * std::max(0.0, 1 - *r->score.roofline)
                                                : 0.0;
  };
  std::vector<const TaskResult*> order;
  for (const auto& r : results) order.push_back(&r);
  std::ranges::stable_sort(order, std::greater{}, left);
  return order;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string tile(const std::string& figure, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(figure), escaped(what));
}

// A name, the shares by p, the geometric mean.
struct Line {
  std::string name;
  const std::map<std::string, double>* fast;
  const std::optional<double>* geomean;
};
std::vector<Line> lines_of(const Summary& s) {
  std::vector<Line> lines;
  const auto add = [&](const char* name, const std::map<std::string, double>& fast,
                       const std::optional<double>& geomean) {
    if (geomean) lines.push_back({name, &fast, &geomean});
  };
  add("over eager, measured", s.fast_p, s.geomean);
  add("over torch.compile, measured", s.fast_p_compile, s.geomean_compile);
  add("over eager, both called from Python", s.fast_p_called, s.geomean_called);
  add("over torch.compile, both called from Python", s.fast_p_compile_called, s.geomean_compile_called);
  add("over eager in TF32, both called from Python", s.fast_p_called_tf32, s.geomean_called_tf32);
  add("over torch.compile in TF32, both called from Python", s.fast_p_compile_called_tf32,
      s.geomean_compile_called_tf32);
  add("over eager, by the cost model", s.fast_p_modelled, s.geomean_modelled);
  return lines;
}

}  // namespace

std::map<std::string, int64_t> timed_out(const std::vector<TaskResult>& results) {
  std::map<std::string, int64_t> counts;
  for (const auto& r : results)
    for (const auto& [mode, baseline] : r.compared.baselines)
      if (baseline.timed_out) ++counts[mode];
  return counts;
}

std::string html_page(const std::vector<TaskResult>& results, const Summary& s, const About& about) {
  const double share = s.tasks > 0 ? static_cast<double>(s.verified) / static_cast<double>(s.tasks) : 0;
  std::string body =
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{} tasks on {} · {}</p>\n<p class=\"soft\">{}</p>\n",
                  escaped(about.suite), s.tasks, escaped(about.hardware), escaped(about.versions),
                  escaped(about.question));
  body += "<div class=\"tiles\">\n" +
          tile(percent(share), fmt::format("verified: {} of {}", s.verified, s.tasks));
  for (const auto& line : lines_of(s))
    body += tile(fmt::format("{:.2f}x", **line.geomean), "geometric mean " + line.name);
  if (const auto median = s.roofline.find("0.5"); median != s.roofline.end())
    body += tile(percent(median->second), "of the roofline, median");
  for (const auto& [k, value] : s.pass_at_k) body += tile(percent(value), "pass@" + k);
  body += "</div>\n";
  if (!s.roofline.empty()) {
    body += "<h2>Share of the roofline: the least time that a task can take, over the candidate's</h2>\n";
    std::vector<search::Bar> bars;
    for (const auto& [share_of_tasks, value] : s.roofline)
      bars.push_back({.label = fmt::format("{:.0f} % of the tasks below", 100 * std::stod(share_of_tasks)),
                      .value = value,
                      .text = percent(value),
                      .ours = share_of_tasks == "0.5"});
    body += search::bars(bars);
  }
  if (!lines_of(s).empty()) {
    body += "<h2>fast_p: verified, and more than p times as fast</h2>\n";
    std::vector<search::Bar> bars;
    for (const auto& line : lines_of(s))
      for (const auto& [p, value] : *line.fast)
        bars.push_back({.label = fmt::format("p = {} {}", p, line.name),
                        .value = value,
                        .text = percent(value),
                        .ours = p == "1"});
    body += search::bars(bars);
  }
  body +=
      "<h2>Tasks, by time beyond the roofline</h2>\n<div "
      "class=\"scroll\"><table><tr><th>task</th><th>verdict</th><th>by</th><th "
      "class=\"n\">speed-up</th>"
      "<th class=\"n\">over torch.compile</th><th class=\"n\">called</th><th class=\"n\">called, over "
      "torch.compile</th><th class=\"n\">roofline</th><th class=\"n\">modelled</th><th "
      "class=\"n\">time</th><th "
      "class=\"n\">samples</th>"
      "<th class=\"n\">seconds</th><th>reason</th></tr>\n";
  for (const TaskResult* each : by_headroom(results)) {
    const TaskResult& r = *each;
    body += fmt::format(
        "<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td "
        "class=\"n\">{}/{}</td><td class=\"n\">{:.1f}</td>"
        "<td class=\"wide\">{}</td></tr>\n",
        escaped(r.id), r.verdict == verify::VerdictKind::kVerified ? "good" : "bad", verdict_name(r),
        escaped(r.proposer), times_text(r.score.over_eager), times_text(r.score.over_compile),
        over_text(r, "eager", r.score.called_over_eager),
        over_text(r, "compile", r.score.called_over_compile),
        r.score.roofline ? percent(*r.score.roofline) : "-", times_text(r.score.modelled),
        ms_text(r.candidate_ms), r.score.verified, r.score.samples, r.seconds,
        r.verdict == verify::VerdictKind::kVerified ? "" : escaped(r.reason.substr(0, 300)));
  }
  return search::page("nereid eval: " + about.suite, body + "</table></div>\n");
}

std::string text_table(const std::vector<TaskResult>& results, const Summary& s) {
  size_t width = 4;
  for (const auto& r : results) width = std::max(width, std::min<size_t>(r.id.size(), 48));
  std::string text =
      fmt::format("{:{}}  {:13}  {:9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", "task", width, "verdict",
                  "by", "speed-up", "called", "roofline", "modelled", "time", "verified");
  for (const auto& r : results)
    text += fmt::format("{:{}}  {:13}  {:9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}/{}\n",
                        trace::safe_text(r.id), width, verdict_name(r), r.proposer.empty() ? "-" : r.proposer,
                        times_text(r.score.over_eager), times_text(r.score.called_over_eager),
                        r.score.roofline ? percent(*r.score.roofline) : "-", times_text(r.score.modelled),
                        ms_text(r.candidate_ms), r.score.verified, r.score.samples);
  text +=
      fmt::format("\nverified  {} of {} ({})\n", s.verified, s.tasks,
                  percent(s.tasks > 0 ? static_cast<double>(s.verified) / static_cast<double>(s.tasks) : 0));
  for (const auto& [folder, own] : by_folder(results)) {
    text +=
        fmt::format("  {}  {} of {} ({})", trace::safe_text(folder.empty() ? "." : folder), own.verified,
                    own.tasks, percent(static_cast<double>(own.verified) / static_cast<double>(own.tasks)));
    for (const auto& [k, value] : own.pass_at_k) text += fmt::format(", pass@{} {}", k, percent(value));
    text += "\n";
  }
  for (const auto& line : lines_of(s)) {
    text += fmt::format("{}: geometric mean {:.3f}", line.name, **line.geomean);
    for (const auto& [p, value] : *line.fast) text += fmt::format(", fast_{} {}", p, percent(value));
    text += "\n";
  }
  if (!s.roofline.empty()) {
    text += "share of the roofline, percentiles of the tasks:";
    for (const auto& [q, value] : s.roofline)
      text += fmt::format(" {:.0f} %: {},", 100 * std::stod(q), percent(value));
    text.back() = '\n';
  }
  for (const auto& [mode, count] : timed_out(results))
    text += fmt::format("{}: timed out on {} task{}\n", search::baseline_name(mode), count,
                        count == 1 ? "" : "s");
  for (const auto& [k, value] : s.pass_at_k) text += fmt::format("pass@{}  {}\n", k, percent(value));
  return text;
}

}  // namespace nereid::eval
