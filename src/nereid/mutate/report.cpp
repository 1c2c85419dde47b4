#include "nereid/mutate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "nereid/base/json.h"
#include "nereid/search/report/html.h"
#include "nereid/trace/notation.h"

namespace nereid::mutate {
namespace {

using search::escaped;

void count(Row& row, const ResultLine& line) {
  ++row.mutants;
  if (line.verdict == "Error") {
    ++row.errors;
  } else if (!line.witness) {
    ++row.set_aside;
    row.refused_unseen += line.verified() ? 0 : 1;
  } else {
    ++row.witnessed;
    row.killed += line.verified() ? 0 : 1;
    row.kernelbench_kills += line.kernelbench == KernelBench::kKills ? 1 : 0;
    row.kernelbench_passes += line.kernelbench == KernelBench::kPasses ? 1 : 0;
  }
}

Share kernelbench_share(const Row& row) {
  return wilson(row.kernelbench_kills, row.kernelbench_kills + row.kernelbench_passes);
}

Json row_json(const Row& row) {
  const Share killed = wilson(row.killed, row.witnessed), bench = kernelbench_share(row);
  const auto share = [](const Share& s) {
    return Json{{"share", s.value}, {"low", s.low}, {"high", s.high}};
  };
  return {{"mutants", row.mutants},
          {"set_aside", row.set_aside},
          {"witnessed", row.witnessed},
          {"killed", row.killed},
          {"killed_share", share(killed)},
          {"kernelbench_kills", row.kernelbench_kills},
          {"kernelbench_passes", row.kernelbench_passes},
          {"kernelbench_share", share(bench)},
          {"errors", row.errors},
          {"refused_without_witness", row.refused_unseen}};
}

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

struct Cells {
  std::string name, mutants, aside, witnessed, killed, rate, interval, bench, bench_interval, errors;
};
Cells cells_of(const std::string& name, const Row& row) {
  const Share killed = wilson(row.killed, row.witnessed), bench = kernelbench_share(row);
  const auto number = [](int64_t n) { return fmt::format("{}", n); };
  const bool any = row.witnessed > 0;
  return {name,
          number(row.mutants),
          number(row.set_aside),
          number(row.witnessed),
          number(row.killed),
          any ? percent(killed.value) : "-",
          any ? fmt::format("{} to {}", percent(killed.low), percent(killed.high)) : "-",
          any ? percent(bench.value) : "-",
          any ? fmt::format("{} to {}", percent(bench.low), percent(bench.high)) : "-",
          number(row.errors)};
}

std::vector<Cells> table_of(const Report& report) {
  std::vector<Cells> table;
  for (const auto& [fault, row] : report.rows) table.push_back(cells_of(std::string(to_string(fault)), row));
  table.push_back(cells_of("all", report.all));
  return table;
}

std::string honest_line(const Report& report) {
  const Share refused = wilson(static_cast<int64_t>(report.refused.size()), report.honest);
  return fmt::format("honest variants refused: {} of {} (at most {} % with 95 % confidence); errors {}",
                     report.refused.size(), report.honest, percent(refused.high), report.honest_errors);
}

std::string difference(const ResultLine& line) {
  std::string html = "<pre>";
  for (const auto& before : line.before) html += "- " + escaped(before) + "\n";
  for (const auto& after : line.after) html += "+ " + escaped(after) + "\n";
  return html + "</pre>\n";
}

std::string survivor_html(const ResultLine& line) {
  std::string html =
      fmt::format("<h3>{}</h3>\n<p>{}: {}", escaped(line.id), to_string(line.fault), escaped(line.what));
  if (!line.kernel.empty()) html += fmt::format(", kernel {}", escaped(line.kernel));
  if (line.line > 0) html += fmt::format(", {}:{}", escaped(line.file), line.line);
  html += fmt::format("</p>\n<p class=\"soft\">Witness: inputs '{}', seed {}: {}</p>\n",
                      escaped(line.witness->inputs), line.witness->seed, escaped(line.witness->reason));
  if (!line.source.empty()) html += "<pre>" + escaped(line.source) + "</pre>\n";
  return html + difference(line);
}

}  // namespace

Share wilson(int64_t k, int64_t n) {
  if (n <= 0) return {};
  constexpr double kZ = 1.959963984540054;
  const double total = static_cast<double>(n), p = static_cast<double>(k) / total;
  const double below = 1 + kZ * kZ / total, middle = (p + kZ * kZ / (2 * total)) / below;
  const double half = kZ * std::sqrt(p * (1 - p) / total + kZ * kZ / (4 * total * total)) / below;
  return {p, std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

Report report_of(const std::vector<ResultLine>& results) {
  Report report;
  std::set<std::string> kernels;
  for (const auto& line : results) {
    if (line.kind == ResultLine::Kind::kHonest) {
      ++report.honest;
      if (line.verdict == "Error")
        ++report.honest_errors;
      else if (!line.verified())
        report.refused.push_back(&line);
      continue;
    }
    kernels.insert(line.subject);
    count(report.rows[line.fault], line);
    count(report.all, line);
    if (line.witness && line.verified()) report.survivors.push_back(&line);
    if (line.witness && !line.verified()) ++report.killed_by[line.rule];
  }
  report.kernels = static_cast<int64_t>(kernels.size());
  std::ranges::sort(report.survivors, {},
                    [](const ResultLine* line) { return std::pair(line->fault, line->id); });
  return report;
}

Json to_json(const Report& report) {
  Json rows = Json::object(), survivors = Json::array(), refused = Json::array();
  for (const auto& [fault, row] : report.rows) rows[std::string(to_string(fault))] = row_json(row);
  for (const auto* line : report.survivors) survivors.push_back(to_json(*line));
  for (const auto* line : report.refused) refused.push_back(to_json(*line));
  return {{"classes", std::move(rows)},
          {"all", row_json(report.all)},
          {"kernels", report.kernels},
          {"honest", report.honest},
          {"honest_errors", report.honest_errors},
          {"honest_refused", std::move(refused)},
          {"killed_by", report.killed_by},
          {"survivors", std::move(survivors)}};
}

std::string text_table(const Report& report) {
  std::string text =
      fmt::format("{:15} {:>8} {:>9} {:>9} {:>8} {:>8} {:>17} {:>12} {:>17} {:>7}\n", "class", "mutants",
                  "set aside", "witnessed", "killed", "%", "95 %", "KernelBench %", "95 %", "errors");
  for (const auto& c : table_of(report))
    text +=
        fmt::format("{:15} {:>8} {:>9} {:>9} {:>8} {:>8} {:>17} {:>13} {:>17} {:>7}\n", c.name, c.mutants,
                    c.aside, c.witnessed, c.killed, c.rate, c.interval, c.bench, c.bench_interval, c.errors);
  text += fmt::format("{} kernels; set aside and refused all the same: {}\n", report.kernels,
                      report.all.refused_unseen);
  text += honest_line(report) + "\n";
  for (const auto* line : report.refused)
    text += fmt::format("  refused: {}{} {}: {}\n", trace::safe_text(line->id),
                        line->what.empty() ? "" : " (" + line->what + ")", line->verdict,
                        trace::safe_text(line->sentence.substr(0, 200)));
  return text;
}

std::string html_page(const Report& report, const CampaignEnd& end) {
  const Share killed = wilson(report.all.killed, report.all.witnessed);
  std::string body = "<h1>Mutation testing of the verdict</h1>\n";
  body += fmt::format(
      "<p class=\"soft\">{} kernels, {} mutants, {} of them with a witness; {} mutants not judged</p>\n",
      report.kernels, report.all.mutants, report.all.witnessed, end.left);
  const auto tile = [](const std::string& figure, const std::string& what) {
    return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", figure, escaped(what));
  };
  body += "<div class=\"tiles\">\n" + tile(percent(killed.value) + " %", "of witnessed mutants killed") +
          tile(fmt::format("{}", report.survivors.size()), "survivors") +
          tile(fmt::format("{} of {}", report.refused.size(), report.honest), "honest variants refused") +
          "</div>\n";
  body +=
      "<h2>By class</h2>\n<div class=\"scroll\"><table><tr><th>class</th><th class=\"n\">mutants</th><th "
      "class=\"n\">set aside</th><th class=\"n\">witnessed</th><th class=\"n\">killed</th><th "
      "class=\"n\">%</th><th "
      "class=\"n\">95 %</th><th class=\"n\">KernelBench %</th><th class=\"n\">95 %</th><th "
      "class=\"n\">errors</th></tr>\n";
  for (const auto& c : table_of(report)) {
    body += "<tr><td>" + c.name + "</td>";
    for (const auto* cell : {&c.mutants, &c.aside, &c.witnessed, &c.killed, &c.rate, &c.interval, &c.bench,
                             &c.bench_interval, &c.errors})
      body += "<td class=\"n\">" + *cell + "</td>";
    body += "</tr>\n";
  }
  body +=
      "</table></div>\n<h2>What killed</h2>\n<div class=\"scroll\"><table><tr><th>rule</th><th "
      "class=\"n\">mutants</th></tr>\n";
  for (const auto& [rule, number] : report.killed_by)
    body += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>\n", escaped(rule), number);
  body += "</table></div>\n<h2>Honest variants</h2>\n<p>" + escaped(honest_line(report)) + "</p>\n";
  for (const auto* line : report.refused)
    body += fmt::format("<p><b>{}</b> {} {}: {}</p>\n", escaped(line->id), escaped(line->what),
                        escaped(line->verdict), escaped(line->sentence)) +
            (line->before.empty() ? "" : difference(*line));
  body += "<h2>Survivors</h2>\n";
  if (report.survivors.empty()) body += "<p>None.</p>\n";
  for (const auto* line : report.survivors) body += survivor_html(*line);
  return search::page("nereid mutate", body);
}

}  // namespace nereid::mutate
