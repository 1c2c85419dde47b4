#include "nereid/verify/verdict_format.h"

#include <fmt/format.h>

#include <cmath>

#include "nereid/base/printable.h"
#include "nereid/verify/rules/catalogue.h"

namespace nereid::verify {
namespace {

class VerdictFormatter {
 public:
  VerdictFormatter(const Verdict& verdict, const VerdictFormat& options) : v_(verdict), options_(options) {}

  std::string format() {
    out_ = styled(v_.kind == VerdictKind::kVerified ? "1;32"
                  : v_.kind == VerdictKind::kError  ? "1;33"
                                                    : "1;31",
                  to_string(v_.kind));
    out_ += ": " + (reason(v_).empty() ? "no reason was recorded." : quoted(reason(v_))) + "\n";
    if (!v_.evidence.empty()) place(v_.evidence.front());
    if (v_.errors && v_.kind == VerdictKind::kMismatch) worst(*v_.errors);
    checked();
    if (v_.times) times(*v_.times);
    for (const auto& remark : v_.remarks) line("note", remark.sentence + where(remark));
    if (options_.explain) {
      explain();
    } else if (v_.kind != VerdictKind::kVerified && !v_.evidence.empty()) {
      if (const auto* rule = find_rule(v_.evidence.front().rule)) line("fix", std::string(rule->fix));
    }
    legend();
    return out_;
  }

 private:
  std::string styled(std::string_view code, std::string_view text) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  void line(std::string_view what, const std::string& text) {
    out_ += fmt::format("  {} {}\n", styled("2", fmt::format("{:<9}", what)), quoted(text));
  }
  // What a candidate may have written: nothing in it reaches the terminal as a control, and its further lines
  // are indented, so that none stands where a verdict does.
  static std::string quoted(const std::string& text) {
    std::string out;
    for (const char c : printable(text, Lines::kMany)) {
      out += c;
      if (c == '\n') out += "    ";
    }
    return out;
  }
  static std::string where(const Evidence& e) {
    if (e.file.empty()) return "";
    const std::string file = printable(e.file);
    return e.line > 0 ? fmt::format(" ({}:{})", file, e.line) : fmt::format(" ({})", file);
  }

  void place(const Evidence& e) {
    if (e.file.empty()) return;
    std::string text = printable(e.file);
    if (e.line > 0) text += fmt::format(":{}", e.line);
    if (!e.kernel.empty()) text += fmt::format(", kernel {}", printable(e.kernel));
    line("at", text);
    const std::string shown = options_.source_of ? excerpt(options_.source_of(e.file), e.line, 0) : "";
    if (!shown.empty()) out_ += "          " + shown;
    if (shown.empty() && !e.source.empty())
      out_ += fmt::format("            {} | {}\n", e.line, printable(e.source));
  }

  void worst(const Errors& e) {
    std::string index;
    for (const auto i : e.position) index += fmt::format("{}{}", index.empty() ? "" : ", ", i);
    line("worst", fmt::format("output{}{} [{}]: expected {:.7g}, got {:.7g}; error {:.3g}, tolerance {:.3g}; "
                              "inputs '{}', trial {}",
                              e.output.empty() ? "" : " ", e.output, index, e.expected, e.got, e.max_error,
                              e.max_tolerance, e.inputs, e.trial));
  }

  void checked() {
    const auto& c = v_.coverage;
    if (c.launches > 0) {
      std::string text = fmt::format("{} launch{} of {} kernel{}: {:.0f} % of the work", c.launches,
                                     c.launches == 1 ? "" : "es", c.kernels, c.kernels == 1 ? "" : "s",
                                     100 * c.triton_share);
      if (c.left_out > 0)
        text += fmt::format("; {} checked by leaving {} out", c.left_out, c.left_out == 1 ? "it" : "each");
      line("kernels", text);
    }
    if (c.trials > 0) {
      std::string text = fmt::format("{} comparison{} on {}", c.trials, c.trials == 1 ? "" : "s", c.device);
      std::string kinds;
      for (const auto& kind : c.inputs)
        kinds += (kinds.empty() ? "" : ", ") + (kind == "own" ? "the task's own" : kind);
      if (!kinds.empty()) text += ": " + kinds;
      if (c.sanitized) text += "; every access checked";
      if (c.fenced) text += "; fenced on the GPU";
      line("trials", text);
    }
    if (!c.perturbed.empty() || !c.not_perturbed.empty())
      line("weights",
           fmt::format("{} perturbed, {} as initialized", c.perturbed.size(), c.not_perturbed.size()));
    if (c.alternatives > 1)
      line("configs",
           fmt::format("{} of {} autotuning configurations compared", c.alternatives_run, c.alternatives));
    if (c.draws > 1) line("draws", fmt::format("{} draws of the integer inputs", c.draws));
    std::string shrunk;
    for (const auto& s : c.shrunk)
      shrunk += fmt::format("{}{} {} -> {}", shrunk.empty() ? "" : ", ", s.constant, s.from, s.to);
    if (!shrunk.empty()) line("shrunk", shrunk);
    if (!c.degenerate.empty()) line("weak task", c.degenerate);
    if (c.frozen_parameters) line("assumes", "the parameters do not change after the first call");
    if (v_.errors && v_.kind == VerdictKind::kVerified)
      line("error", fmt::format("at most {:.3g} where {:.3g} is allowed", v_.errors->max_error,
                                v_.errors->max_tolerance));
  }

  // What the words of `checked` mean.
  void legend() {
    if (v_.coverage.launches == 0 && v_.coverage.trials == 0) return;
    line("legend",
         "work: Triton's share of FLOPs and bytes; trials: input distributions; see docs/verdicts.md");
  }

  void times(const Times& t) {
    line("time", fmt::format("{:.4g} ms, reference {:.4g} ms: {:.2f}x (95 % between {:.2f} and {:.2f}), {}",
                             t.candidate_ms, t.reference_ms, t.speedup, t.ci_low, t.ci_high, t.method));
    for (const auto& note : t.notes) line("", note);
  }

  void explain() {
    line("settings", fmt::format("policy {}, protocol {}, seed {}", v_.policy, v_.protocol, v_.seed));
    for (const auto& [process, standing] : v_.isolation) line("isolation", process + ": " + standing);
    for (const auto& e : v_.evidence) {
      out_ += fmt::format("\n{} {}{}\n", styled("1", printable(e.rule)), quoted(e.sentence), where(e));
      if (options_.source_of) out_ += excerpt(options_.source_of(e.file), e.line);
      for (const auto& [name, x] : e.numbers) out_ += fmt::format("  {} = {:.6g}\n", printable(name), x);
      const auto* rule = find_rule(e.rule);
      if (rule == nullptr) continue;
      out_ += fmt::format("  Why: {}\n  Fix: {}\n", rule->why, rule->fix);
    }
  }

  const Verdict& v_;
  const VerdictFormat& options_;
  std::string out_;
};

}  // namespace

std::string format_verdict(const Verdict& verdict, const VerdictFormat& options) {
  return VerdictFormatter(verdict, options).format();
}

}  // namespace nereid::verify
