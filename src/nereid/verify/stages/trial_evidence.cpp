#include "nereid/verify/stages/trial_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "nereid/verify/rules/judged_outputs.h"

namespace nereid::verify {
namespace {

std::string index_text(const std::vector<int64_t>& position) {
  std::string text;
  for (const auto i : position) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  return "[" + text + "]";
}

}  // namespace

std::string_view rule_of(ttir::FindingKind kind) {
  switch (kind) {
    case ttir::FindingKind::kOutOfBounds:
      return "out-of-bounds";
    case ttir::FindingKind::kUninitializedRead:
      return "uninitialized-read";
    case ttir::FindingKind::kRace:
      return "race";
    case ttir::FindingKind::kMisaligned:
      return "misaligned";
    case ttir::FindingKind::kOffsetOverflow:
      return "offset-overflow";
    case ttir::FindingKind::kDivisionByZero:
      return "division-by-zero";
    case ttir::FindingKind::kAssertion:
      return "assertion";
    case ttir::FindingKind::kDeadlock:
      return "deadlock";
    case ttir::FindingKind::kMissingBarrier:
      return "missing-barrier";
    case ttir::FindingKind::kOrderDependent:
      return "order-dependent";
  }
  return "internal";
}

std::string sentence_of(const replay::OutputComparison& output) {
  if (output.wrong == 0 || (output.worst.empty() && output.first_wrong.empty()))
    return fmt::format("{}: {}", output.path, output.reason);
  const bool worst = !output.worst.empty();
  return fmt::format(
      "{} is wrong at {} of {} elements, most at {}: expected {:.7g}, got {:.7g} (error {:.3g}, at most "
      "{:.3g} allowed)",
      output.path, output.wrong, output.elements, index_text(worst ? output.worst : output.first_wrong),
      worst ? output.worst_want : output.first_want, worst ? output.worst_got : output.first_got,
      output.error, output.error_limit);
}

Evidence evidence_at(const replay::Where& where, std::string_view rule, std::string sentence) {
  Evidence e{.rule = std::string(rule),
             .sentence = std::move(sentence),
             .file = where.place.file,
             .line = where.place.line};
  if (!where.op.starts_with("aten::") && where.op.find("::") == std::string::npos) e.kernel = where.op;
  return e;
}

bool changes_memory(const replay::TrialReport& report) {
  return !report.inputs_written.empty() || !report.state_written.empty() || !report.not_as_found.empty();
}

Evidence not_as_found(const TraceAnalysis& candidate, trace::StorageId storage, const std::string& when) {
  Evidence e{.rule = "reuse-of-inputs"};
  const auto name = storage_name(*candidate.trace, storage);
  std::string reader = "forward";
  for (const auto& step : candidate.phases.at(static_cast<size_t>(candidate.judged())).steps) {
    if (std::ranges::find(step.reads, storage) == step.reads.end()) continue;
    reader = step.name, e.file = step.place.file, e.line = step.place.line;
    if (step.work == Work::kTriton) e.kernel = step.name;
    break;
  }
  e.sentence = fmt::format(
      "{} reads {} made from the inputs of an earlier call; calls do not leave it as it was before the "
      "first{}.",
      reader, name, when.empty() ? "" : " (found " + when + ")");
  return e;
}

const StepAnalysis* maker_of(const TraceAnalysis& candidate, size_t output) {
  const auto judged = static_cast<size_t>(candidate.judged());
  const auto values = trace::tensors_in(candidate.trace->phases[judged].output);
  if (output >= values.size()) return nullptr;
  const auto storage = candidate.trace->values[static_cast<size_t>(values[output])].storage;
  const StepAnalysis* found = nullptr;
  for (const auto& step : candidate.phases[judged].steps)
    if (std::find(step.writes.begin(), step.writes.end(), storage) != step.writes.end()) found = &step;
  return found;
}

}  // namespace nereid::verify
