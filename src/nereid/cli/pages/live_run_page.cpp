#include "nereid/cli/pages/live_run_page.h"

#include <fmt/format.h>

#include "nereid/search/report/html.h"

namespace nereid::cli {
namespace {

using search::escaped;

constexpr std::string_view kParts[] = {"engine", "judge", "clock", "trainer", "other"};

constexpr std::string_view kScript =
#include "nereid/cli/pages/live_run_page.html.inc"
    ;

std::string tile(const std::string& name, const std::string& value) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(name));
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// A row for each part of a step: its share of the time, and the GPU's utilization in it.
std::string time_table(const std::map<std::string, double>& figures) {
  if (!figures.contains("wall/engine")) return "";
  std::string out =
      "<h2>Time of the last step</h2>\n<div class=\"scroll\"><table><tr><th>part</th><th "
      "class=\"n\">time</th>"
      "<th class=\"n\">GPU busy</th><th class=\"wide\"></th></tr>\n";
  for (const auto part : kParts) {
    const auto share = figures.find(fmt::format("wall/{}", part));
    if (share == figures.end()) continue;
    const auto gpu = figures.find(fmt::format("busy/gpu_{}", part));
    out += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"wide\">"
        "<div "
        "style=\"width:{:.1f}%;height:.7rem;background:var(--accent);border-radius:3px\"></div></td></tr>\n",
        part, percent(share->second), gpu == figures.end() ? "–" : percent(gpu->second), 100 * share->second);
  }
  return out + "</table></div>\n";
}

}  // namespace

Json watched_step(const std::filesystem::path& folder, const train::RunProgress& run, int64_t step) {
  const auto figures = run.figures_of(step);
  const auto figure = [&](const std::string& name) {
    const auto found = figures.find(name);
    return found == figures.end() ? Json() : Json(found->second);
  };
  const auto group = [&](const std::string& prefix) {
    Json found = Json::object();
    for (const auto& [name, value] : figures)
      if (name.starts_with(prefix)) found[name.substr(prefix.size())] = value;
    return found;
  };
  const bool last = step == run.step;
  return {{"run", folder.string()},
          {"state", std::string(to_string(run.state))},
          {"step", step < 0 ? Json() : Json(step)},
          {"steps", run.steps > 0 ? Json(run.steps) : Json()},
          {"loss", figure("loss")},
          {"reward", figure("reward")},
          {"verified", figure("verdict/Verified")},
          {"tokens_per_s", figure("tokens_per_s")},
          {"rollouts_per_h", figure("rollouts_per_h")},
          {"wall", group("wall/")},
          {"busy", group("busy/")},
          {"memory_gb", figure("memory_gb")},
          {"seconds", run.spent_until(step)},
          {"left_s", last && run.left ? Json(*run.left) : Json()}};
}

std::string live_run_page(const std::string& name) {
  return search::page(
      name, fmt::format("<h1>{}</h1>\n<p id=\"state\" role=\"status\"></p>\n<main id=\"main\"></main>{}",
                        escaped(name), kScript));
}

std::string live_run_content(const std::filesystem::path& folder, const train::RunProgress& run,
                             const std::vector<train::RolloutRecord>& rollouts) {
  using State = train::RunProgress::State;
  const auto figures = run.figures_of(run.step);
  std::string out = fmt::format("<p><span class=\"{}\">{}</span>",
                                run.state == State::kStopped ? "bad" : "good", to_string(run.state));
  if (run.process && run.state == State::kRunning)
    out += escaped(fmt::format(", process {} on {}", run.process->pid, run.process->host));
  if (run.process && run.state == State::kStopped)
    out += fmt::format("; <code>{}</code> resumes it", escaped(run.process->command));
  out += "</p>\n<div class=\"tiles\">\n";
  out += tile("steps", run.steps > 0 ? fmt::format("{} of {}", run.step + 1, run.steps)
                                     : fmt::format("{}", run.step + 1));
  if (run.left && run.state != State::kFinished) out += tile("left", train::duration_text(*run.left));
  const auto add = [&](const char* figure, const char* name, auto text) {
    if (const auto found = figures.find(figure); found != figures.end())
      out += tile(name, text(found->second));
  };
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  const auto whole = [](double value) { return fmt::format("{:.0f}", value); };
  add("reward", "reward", number);
  add("verdict/Verified", "verified", percent);
  add("loss", "loss", number);
  add("tokens_per_s", "tokens/s", whole);
  add("rollouts_per_h", "rollouts an hour", whole);
  add("busy/gpu", "GPU busy", percent);
  add("busy/judge", "judge busy", percent);
  add("memory_gb", "GB of memory, at most", number);
  out += "</div>\n" + time_table(figures);
  return out +
         runs_body(
             {{.name = folder.lexically_normal().string(), .curves = run.curves, .rollouts = rollouts}});
}

}  // namespace nereid::cli
