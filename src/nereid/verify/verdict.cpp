#include "nereid/verify/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/verify/feedback.h"

namespace nereid::verify {
namespace {

// JSON has no infinities: they and NaN are text.
Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

Json numbers(const std::map<std::string, double>& named) {
  Json out = Json::object();
  for (const auto& [name, x] : named) out[name] = number(x);
  return out;
}

Json evidence_json(const std::vector<Evidence>& list) {
  Json out = Json::array();
  for (const auto& e : list) {
    Json item = {{"rule", e.rule}, {"sentence", e.sentence}};
    if (!e.kernel.empty()) item["kernel"] = e.kernel;
    if (!e.file.empty()) item["file"] = e.file;
    if (e.line > 0) item["line"] = e.line;
    if (!e.source.empty()) item["source"] = e.source;
    if (!e.numbers.empty()) item["numbers"] = numbers(e.numbers);
    out.push_back(std::move(item));
  }
  return out;
}

Json coverage_json(const Coverage& c) {
  Json shrunk = Json::array();
  for (const auto& s : c.shrunk) shrunk.push_back({{"constant", s.constant}, {"from", s.from}, {"to", s.to}});
  return {{"device", c.device},
          {"trials", c.trials},
          {"draws", c.draws},
          {"inputs", c.inputs},
          {"perturbed", c.perturbed},
          {"not_perturbed", c.not_perturbed},
          {"shrunk", std::move(shrunk)},
          {"kernels", c.kernels},
          {"launches", c.launches},
          {"alternatives", c.alternatives},
          {"alternatives_run", c.alternatives_run},
          {"left_out", c.left_out},
          {"triton_share", number(c.triton_share)},
          {"memory_bytes", c.memory_bytes},
          {"sanitized", c.sanitized},
          {"fenced", c.fenced},
          {"frozen_parameters", c.frozen_parameters},
          {"reused_output", c.reused_output},
          {"degenerate", c.degenerate.empty() ? Json() : Json(c.degenerate)}};
}

Json errors_json(const Errors& e) {
  return {{"output", e.output},
          {"position", e.position},
          {"inputs", e.inputs},
          {"trial", e.trial},
          {"expected", number(e.expected)},
          {"got", number(e.got)},
          {"max_error", number(e.max_error)},
          {"max_tolerance", number(e.max_tolerance)},
          {"norm_error", number(e.norm_error)},
          {"norm_tolerance", number(e.norm_tolerance)}};
}

Json times_json(const Times& t) {
  return {{"reference_ms", number(t.reference_ms)},
          {"candidate_ms", number(t.candidate_ms)},
          {"speedup", number(t.speedup)},
          {"ci", {number(t.ci_low), number(t.ci_high)}},
          {"method", t.method},
          {"numbers", numbers(t.numbers)},
          {"notes", t.notes}};
}

}  // namespace

std::string reason(const Verdict& v) {
  if (!v.evidence.empty()) return v.evidence.front().sentence;
  if (v.kind != VerdictKind::kVerified) return "";
  const auto& c = v.coverage;
  std::string text = fmt::format("{} comparison{} on {} agree", c.trials, c.trials == 1 ? "" : "s", c.device);
  if (v.times) text += fmt::format("; {:.2f} times the reference's speed", v.times->speedup);
  if (c.reused_output) text += "; its output is a buffer that the next call overwrites (reused-output)";
  return text + ".";
}

std::string headline(const Verdict& v) {
  const std::string why = reason(v);
  return why.empty() ? std::string(to_string(v.kind)) : fmt::format("{}: {}", to_string(v.kind), why);
}

nlohmann::json to_json(const Verdict& v) {
  const auto span = [](const std::optional<Span>& s) { return s ? Json{s->begin, s->end} : Json(); };
  Json out = {{"schema", kVerdictSchema},
              {"verdict", to_string(v.kind)},
              {"reason", reason(v)},
              {"feedback", feedback(v)},
              {"rule", v.evidence.empty() ? Json() : Json(v.evidence.front().rule)},
              {"evidence", evidence_json(v.evidence)},
              {"remarks", evidence_json(v.remarks)},
              {"coverage", coverage_json(v.coverage)},
              {"errors", v.errors ? errors_json(*v.errors) : Json()},
              {"times", v.times ? times_json(*v.times) : Json()},
              {"trace", v.trace.empty() ? Json() : Json(v.trace)},
              {"spans", v.code ? Json{{"code", span(v.code)}, {"plan", span(v.plan)}} : Json()},
              {"reference", v.reference},
              {"candidate", v.candidate},
              {"policy", v.policy},
              {"protocol", v.protocol},
              {"seed", v.seed},
              {"seconds", number(v.seconds)},
              {"phases", numbers(v.phases)},
              {"machine", {{"isolation", v.isolation}}}};
  if (v.without_rules)
    out["verdict_without_rules"] = {
        {"verdict", to_string(v.without_rules->kind)},
        {"times", v.without_rules->times ? times_json(*v.without_rules->times) : Json()}};
  if (v.kind == VerdictKind::kError) out["blame"] = v.input_to_blame ? "input" : "ours";
  return out;
}

int exit_code(const Verdict& v) {
  if (v.kind == VerdictKind::kVerified) return 0;
  if (v.kind != VerdictKind::kError) return 1;
  return v.input_to_blame ? 2 : 3;
}

std::string excerpt(std::string_view source, int line, int around) {
  std::string out;
  int number = 0;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    ++number;
    if (number > line + around) break;
    if (number >= line - around)
      out += fmt::format("{} {:5} | {}\n", number == line ? '>' : ' ', number,
                         printable(source.substr(at, end - at)));
    at = end + 1;
  }
  return number < line ? "" : out;
}

}  // namespace nereid::verify
