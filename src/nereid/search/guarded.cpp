#include "nereid/search/guarded.h"

#include <utility>

#include "nereid/base/program/interrupt.h"
#include "nereid/trace/format/codec.h"

namespace nereid::search {
namespace {

constexpr double kModelError = 0.03;  // relative; modelled times that differ by less are equal

// Without its seconds, and without the lines of the constructor's steps: where the class inherits its
// constructor, they are those of the guard around it.
std::string bytes_of(trace::Trace trace) {
  trace.seconds = 0;
  for (trace::Phase& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kInit)
      for (trace::Step& step : phase.steps) std::visit([](auto& each) { each.place = {}; }, step);
  return trace::serialize(trace);
}

// False where the file does the same in training and in evaluation, so that either holds.
bool mode_changes(Evaluator& evaluator, const Task& task, const std::string& source,
                  const std::string& traced, Deadline deadline) {
  const auto reference =
      evaluator.trace_of(task, compiler::in_other_mode(task.source, "Model"), "Model", deadline);
  if (!reference.ok() || bytes_of(*reference) != bytes_of(task.trace)) return true;
  const auto candidate =
      evaluator.trace_of(task, compiler::in_other_mode(source, "ModelNew"), "ModelNew", deadline);
  return !candidate.ok() || bytes_of(*candidate) != traced;
}

// An Error where the file that captures itself is not verified, or makes no graph.
Status captured(Evaluator& evaluator, const Task& task, const std::string& text, const trace::Trace& plain,
                Deadline deadline) {
  NEREID_TRY(const trace::Trace traced, evaluator.trace_of(task, text, "ModelNew", deadline));
  // A captured forward also copies its inputs or its results.
  if (traced.phases.back().steps.size() <= plain.phases.back().steps.size())
    return input_error(
        "--cuda-graph: forward cannot be captured: a result shares memory with an input, with the module or "
        "with another result, or an input has no static buffer");
  const Judged judged = evaluator.judge(task, "cuda graph", {.text = text}, deadline);
  if (judged.verified()) return ok_status();
  return input_error("--cuda-graph: the module that captures itself is not verified: {}", judged.reason);
}

// Without traces of the file.
Result<Guarded> guarded_untraced(const Task& task, const std::string& source, const compiler::Guard& guard,
                                 bool direct) {
  const compiler::Assumptions assumptions{
      .reference = task.trace, .candidate = task.trace, .state_known = false, .direct = direct};
  NEREID_TRY(std::string text, guard.around(source, assumptions));
  return Guarded{std::move(text), compiler::assumptions_text(assumptions), false};
}

// Blamed on an interrupt where the deadline passes meanwhile.
Result<trace::Trace> trace_in_time(Evaluator& evaluator, const Task& task, const std::string& source,
                                   Deadline deadline) {
  auto traced = evaluator.trace_of(task, source, "ModelNew", deadline);
  if (!traced.ok() && deadline.passed())
    return Error{"the time budget ended before the file was traced", Blame::kInterrupted};
  return traced;
}

Result<Guarded> guarded_traced(Evaluator& evaluator, const Task& task, const std::string& source,
                               const compiler::Guard& guard, const GuardOptions& options) {
  const bool graph = options.graph != compiler::Assumptions::Graph::kNone;
  NEREID_TRY(const trace::Trace candidate, trace_in_time(evaluator, task, source, options.deadline));
  const std::string traced = bytes_of(candidate);
  const compiler::Assumptions assumptions{
      .reference = task.trace,
      .candidate = candidate,
      .modes = mode_changes(evaluator, task, source, traced, options.deadline),
      .fallback = options.fallback ? task.source : "",
      .direct = options.direct && !graph,
      .graph = options.graph};
  NEREID_TRY(std::string text, guard.around(source, assumptions));
  if (graph) {
    NEREID_TRY_STATUS(captured(evaluator, task, text, candidate, options.deadline));
    return Guarded{std::move(text), compiler::assumptions_text(assumptions)};
  }
  NEREID_TRY(const trace::Trace again, trace_in_time(evaluator, task, text, options.deadline));
  if (bytes_of(again) != traced)
    return our_error(
        "with its guard the file for {} has another trace than the verified one; nothing is written",
        task.name);
  return Guarded{std::move(text), compiler::assumptions_text(assumptions)};
}

}  // namespace

Result<Guarded> guarded(Evaluator& evaluator, const Task& task, const std::string& source,
                        const compiler::Guard& guard, const GuardOptions& options) {
  const bool graph = options.graph != compiler::Assumptions::Graph::kNone;
  if (!interrupted() && (graph || !options.deadline.passed())) {
    auto file = guarded_traced(evaluator, task, source, guard, options);
    if (file.ok() || file.error().blame != Blame::kInterrupted) return file;
    if (graph && !interrupted()) return input_error("--cuda-graph: {}", file.error().message);
  }
  return guarded_untraced(task, source, guard, options.direct);
}

Result<bool> mode_matters(Evaluator& evaluator, const Task& task, const std::string& source) {
  NEREID_TRY(const trace::Trace candidate, evaluator.trace_of(task, source, "ModelNew"));
  return mode_changes(evaluator, task, source, bytes_of(candidate), Deadline::never());
}

bool slower_than_eager(const Task& task, const Judged& judged) {
  if (judged.times) return judged.times->ci_high < 1;
  return judged.work && task.work.ms > 0 && judged.work->ms > task.work.ms * (1 + kModelError);
}

}  // namespace nereid::search
