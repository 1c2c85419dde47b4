#include "nereid/search/report/result_file.h"

#include <fmt/ranges.h>

#include <sstream>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/trace/notation.h"

namespace nereid::search {
namespace {

constexpr size_t kColumns = 108;

// Each line of the text as comments of at most kColumns columns; a word that is longer stays whole.
std::string comment(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string rest = trace::safe_text(line);
    do {
      size_t end = rest.size();
      if (end > kColumns) {
        end = rest.rfind(' ', kColumns);
        if (end == std::string::npos || end == 0) end = std::min(rest.find(' ', kColumns), rest.size());
      }
      out += end == 0 ? "#\n" : "# " + rest.substr(0, end) + "\n";
      rest = end < rest.size() ? rest.substr(end + 1) : "";
    } while (!rest.empty());
  }
  return out;
}

}  // namespace

std::string milliseconds_text(double ms) {
  if (ms < 1) return fmt::format("{:.3g} us", ms * 1e3);
  return ms < 1000 ? fmt::format("{:.3g} ms", ms) : fmt::format("{:.3g} s", ms / 1e3);
}

std::string speed_text(const Task& task, const Judged& judged) {
  if (judged.times)
    return fmt::format("{:.2f} times eager PyTorch ({} against {}, 95 % interval {:.2f} to {:.2f})",
                       judged.times->speedup, milliseconds_text(judged.times->candidate_ms),
                       milliseconds_text(judged.times->reference_ms), judged.times->ci_low,
                       judged.times->ci_high);
  if (judged.work && judged.work->ms > 0)
    return fmt::format("not measured; the cost model of an H200 says {} against eager PyTorch's {}",
                       milliseconds_text(judged.work->ms), milliseconds_text(task.work.ms));
  return "not measured";
}

std::string result_file(const Task& task, const Judged& best, const Provenance& p) {
  const auto verdict = parse_json(best.verdict, "verdict");
  const Json whole = verdict.ok() ? *verdict : Json::object();
  const Json coverage = whole.value("coverage", Json::object());
  std::string text = fmt::format("Written by `nereid optimize` ({}) for {} (SHA-256 {}).\n", p.program,
                                 p.reference, task.hash.substr(0, 16));
  text += fmt::format(
      "Proposed by {}{}. Verified on {} under the policy `{}`: {} comparisons with the reference, {} kernels "
      "in "
      "{} launches, {:.0f} % of the work (FLOPs and bytes) in Triton.\n",
      best.proposer, best.variant.empty() ? "" : " (" + best.variant + ")", p.hardware,
      whole.value("policy", ""), coverage.value("trials", 0), coverage.value("kernels", 0),
      coverage.value("launches", 0), 100 * coverage.value("triton_share", 0.0));
  std::vector<std::string> kinds;
  for (const auto& kind : coverage.value("inputs", Json::array()))
    if (kind.is_string()) kinds.push_back(kind.get<std::string>());
  if (!kinds.empty())
    text += fmt::format("Inputs tried: {} (seed {}).\n", fmt::join(kinds, ", "),
                        whole.value("seed", uint64_t{0}));
  text += p.assumptions;
  text += "Speed: " + speed_text(task, best) + ".\n";
  if (p.compiled != nullptr && p.compiled->ms() && best.ms())
    text += fmt::format("torch.compile's kernels (Inductor, replayed): {}, {}.\n",
                        milliseconds_text(*p.compiled->ms()),
                        p.compiled->times ? "measured on the same GPU" : "modelled");
  text += baselines_text(p.baselines, p.hardware);
  if (coverage.value("frozen_parameters", false))
    text += "It assumes that the parameters do not change after the first call.\n";
  for (const auto& shrunk : coverage.value("shrunk", Json::array()))
    text += fmt::format("Verified at a smaller size: {} = {} in place of {}.\n", shrunk.value("constant", ""),
                        shrunk.value("to", int64_t{0}), shrunk.value("from", int64_t{0}));
  text += fmt::format("With {}.\n", p.versions);
  // The compiler's files contain their plan.
  if (best.source.find(best.plan.substr(0, best.plan.find('\n'))) == std::string::npos)
    text += "\nPlan:\n" + best.plan;
  // A model's code keeps the lines of its answer, of which the first are empty.
  const std::string source =
      best.source.substr(std::min(best.source.find_first_not_of('\n'), best.source.size()));
  return comment(text) + "\n" + source + (source.ends_with('\n') ? "" : "\n");
}

}  // namespace nereid::search
