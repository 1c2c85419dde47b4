#include "nereid/verify/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nereid/base/interrupt.h"

namespace nereid::verify {
namespace {

using replay::InputKind;

constexpr std::array kOtherKinds = {InputKind::kZeros,  InputKind::kOnes,     InputKind::kNegative,
                                    InputKind::kTiny,   InputKind::kHuge,     InputKind::kRamp,
                                    InputKind::kOneHot, InputKind::kOutliers, InputKind::kInfinities,
                                    InputKind::kNans,   InputKind::kFlipped};
// Where a trial takes long, those that find the most; and the first of them finds nine in ten of what the task's own
// inputs do not show.
constexpr std::array kFewKinds = {InputKind::kHuge, InputKind::kOutliers, InputKind::kNegative};
constexpr int64_t kLargeTask = int64_t{256} << 20;  // bytes of memory, of both workers
constexpr double kNoDigit = 0.1;                          // of the output's scale
constexpr double kLongTrial = 3, kLongAlternatives = 20;  // seconds
constexpr size_t kMostLeftOut = 16;
constexpr int kMostAlternatives = 64;
constexpr size_t kMostFindings = 5;

uint64_t trial_seed(uint64_t seed, int draw, int number) {
  uint64_t x = seed + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(1000 * draw + number + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (x ^ (x >> 31)) >> 11;
}

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

std::string index_text(const std::vector<int64_t>& position) {
  std::string text;
  for (const auto i : position) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  return "[" + text + "]";
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

Evidence at(const replay::Where& where, std::string_view rule, std::string sentence) {
  Evidence e{.rule = std::string(rule),
             .sentence = std::move(sentence),
             .file = where.place.file,
             .line = where.place.line};
  if (!where.op.starts_with("aten::") && where.op.find("::") == std::string::npos) e.kernel = where.op;
  return e;
}

}  // namespace

Trials::Trials(replay::Session& session, const TraceFacts& reference, const TraceFacts& candidate,
               const RuleReport& rules, const Settings& settings, Verdict& verdict)
    : session_(session),
      reference_(reference),
      candidate_(candidate),
      rules_(rules),
      settings_(settings),
      verdict_(verdict),
      blind_(candidate.blind_to_values()),
      brief_(settings.few_kinds && session.facts().peak_bytes > kLargeTask) {}

Status Trials::run(int draw) {
  NEREID_TRY_STATUS(own_inputs(draw));
  if (draw > 0) return ok_status();
  if (good() && settings_.protocol == Protocol::kNereid) NEREID_TRY_STATUS(other_inputs());
  if (good()) NEREID_TRY_STATUS(alternatives());
  auto& c = verdict_.coverage;
  if (judged_trials_ > 1 && constant_trials_ == judged_trials_) {
    c.degenerate = "the reference gives the same number everywhere";
  } else if (judged_trials_ > 1 && insensitive_trials_ >= judged_trials_ - 1) {
    c.degenerate = "the reference's outputs do not change with its inputs";
  }
  return ok_status();
}

Result<replay::TrialReport> Trials::one(InputKind kind, int number, bool checked) {
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  const replay::Trial trial{
      .seed = trial_seed(settings_.seed, static_cast<int>(verdict_.coverage.draws), number),
      .kind = kind,
      .perturb = settings_.protocol == Protocol::kNereid,
      .sanitize = number == 0 || (checked && first_seconds_ < kLongTrial)};
  auto tolerance = settings_.tolerance;
  // Other kinds of input are for what goes wrong altogether; how exactly a sum is taken is judged on the
  // task's own.
  if (kind != InputKind::kOwn) tolerance.slack *= kSlackOnOtherKinds;
  return session_.trial(trial, tolerance, settings_.within(20 * settings_.time_limit + 60));
}

Status Trials::own_inputs(int draw) {
  const int count = draw == 0 && !brief_ ? std::max(1, settings_.trials) : 1;
  for (int number = 0; number < count && good(); ++number) {
    NEREID_TRY(const auto report, one(InputKind::kOwn, number, !blind_));
    const bool fresh = number == 0;
    if (fresh) first_seconds_ = report.seconds_candidate + report.seconds_reference + report.seconds_oracle;
    if (report.reference_failed)
      return input_error("the reference fails: {} ({})", report.reference_failed->message,
                         describe(report.reference_failed->where));
    verdict_.coverage.sanitized |= report.trial.sanitize && settings_.device == replay::Device::kCpu;
    verdict_.coverage.fenced |= report.trial.sanitize && settings_.device == replay::Device::kCuda;
    if (report.failed || !report.findings.empty() || (!report.inputs_written.empty() && !rules_.ignored)) {
      NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
      break;
    }
    // Whether the kernels matter comes before whether they are right, where there is something to compare.
    const bool comparable = !report.comparison || report.comparison->structure.empty();
    if (fresh && draw == 0 && comparable && !rules_.ignored) {
      NEREID_TRY_STATUS(leave_out());
      if (!good()) break;
    }
    NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
  }
  return ok_status();
}

Result<LeftOut> Trials::without(std::vector<int> steps) {
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  NEREID_TRY(const auto report, session_.leave_out(steps, settings_.within(20 * settings_.time_limit + 60)));
  LeftOut trial{.steps = std::move(steps), .outputs_changed = report.outputs_changed, .all = false};
  if (report.failed) {
    const auto& judged = candidate_.trace->phases.at(static_cast<size_t>(candidate_.judged()));
    trial.outputs_changed.assign(trace::tensors_in(judged.output).size(), true);
  }
  return trial;
}

Status Trials::leave_out() {
  std::vector<LeftOut> found;
  std::vector<bool> changed;
  size_t tried = 0;  // launches
  for (const auto& steps : launches_to_leave_out(candidate_, rules_.live_launches, kMostLeftOut)) {
    NEREID_TRY(auto trial, without(steps));
    tried += steps.size();
    changed.resize(trial.outputs_changed.size());
    for (size_t i = 0; i < changed.size(); ++i) changed[i] = changed[i] || trial.outputs_changed[i];
    found.push_back(std::move(trial));
  }
  verdict_.coverage.left_out = static_cast<int64_t>(found.size());
  // Where there are too many to leave out in turn, an output may depend on those alone that were not.
  if (tried < rules_.live_launches.size() && std::ranges::count(changed, false) > 0) {
    NEREID_TRY(auto trial, without(rules_.live_launches));
    trial.all = true;
    found.push_back(std::move(trial));
  }
  auto report = check_effects(reference_, candidate_, settings_.policy, found);
  verdict_.coverage.triton_share = report.triton_share;
  verdict_.remarks.insert(verdict_.remarks.end(), report.remarks.begin(), report.remarks.end());
  if (!report.broken.empty()) {
    verdict_.word = Word::kDisallowed;
    verdict_.evidence = std::move(report.broken);
  }
  return ok_status();
}

Status Trials::other_inputs() {
  const bool few = settings_.few_kinds || first_seconds_ > kLongTrial;
  const auto* kinds = few ? kFewKinds.data() : kOtherKinds.data();
  const size_t count = brief_ ? 1 : few ? kFewKinds.size() : kOtherKinds.size();
  for (size_t i = 0; i < count && good(); ++i) {
    const int number = settings_.trials + static_cast<int>(i);
    NEREID_TRY(const auto report, one(kinds[i], number, !blind_));
    NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
  }
  return ok_status();
}

Status Trials::alternatives() {
  const auto& steps = candidate_.trace->phases.at(static_cast<size_t>(candidate_.judged())).steps;
  std::vector<std::pair<int, int>> untried;  // step, alternative
  for (const int step : rules_.live_launches)
    if (const auto* launch = std::get_if<trace::Launch>(&steps[static_cast<size_t>(step)]))
      for (size_t i = 1; i < launch->alternatives.size(); ++i)
        untried.emplace_back(step, static_cast<int>(i));
  verdict_.coverage.alternatives_run = rules_.launches;  // the first of each
  if (untried.empty()) return ok_status();

  const int number = settings_.trials + static_cast<int>(kOtherKinds.size());
  NEREID_TRY(const auto base, one(InputKind::kOwn, number, true));
  NEREID_TRY(bool agreed, take(base, number));
  const Stopwatch watch;
  const size_t stride = (untried.size() + kMostAlternatives - 1) / kMostAlternatives;
  for (size_t i = 0; agreed && i < untried.size() && watch.seconds() < kLongAlternatives; i += stride) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    const auto [step, index] = untried[i];
    const auto& launch = std::get<trace::Launch>(steps[static_cast<size_t>(step)]);
    const auto& alternative = launch.alternatives[static_cast<size_t>(index)];
    NEREID_TRY(const auto report, session_.try_alternative({step}, index, settings_.tolerance,
                                                           settings_.within(20 * settings_.time_limit + 60)));
    // A configuration that the GPU cannot run is passed over, as Triton's autotuner does.
    if (settings_.device == replay::Device::kCuda && report.failed &&
        report.failed->kind == replay::Failure::Kind::kUnsupported)
      continue;
    NEREID_TRY(agreed, take(report, number, fmt::format("with the configuration {}", alternative.config)));
    verdict_.coverage.alternatives_run += agreed ? 1 : 0;
  }
  return ok_status();
}

Result<bool> Trials::take(const replay::TrialReport& report, int number, const std::string& circumstances) {
  if (!report.applicable) return true;
  if (report.reference_failed) {
    if (report.trial.kind != InputKind::kOwn) return true;  // the reference is not for such inputs
    return input_error("the reference fails: {} ({})", report.reference_failed->message,
                       describe(report.reference_failed->where));
  }
  // An index made from such an input may lie anywhere.
  if (report.trial.kind == InputKind::kFlipped && (report.failed || !report.findings.empty())) return true;
  std::string when = circumstances;
  if (report.trial.kind != InputKind::kOwn)
    when = fmt::format("on inputs of kind '{}'", replay::to_string(report.trial.kind));
  if (report.failed && take_failure(*report.failed, when)) return false;
  if (!report.inputs_written.empty() && !rules_.ignored) {
    end(Word::kDisallowed, {.rule = "input-written",
                            .sentence = fmt::format("forward writes {}, which the reference leaves alone.",
                                                    report.inputs_written.front())});
    return false;
  }
  if (take_findings(report, when)) return false;
  if (!report.comparison) return our_error("a replay ended without a comparison");
  NEREID_TRY_STATUS(take_comparison(report, number, when));
  return good();
}

bool Trials::take_findings(const replay::TrialReport& report, const std::string& circumstances) {
  if (report.findings.empty()) return false;
  verdict_.word = Word::kUnsafe;
  for (size_t i = 0; i < std::min(kMostFindings, report.findings.size()); ++i) {
    const auto& finding = report.findings[i];
    Evidence e{.rule = std::string(rule_of(finding.kind)),
               .sentence = finding.sentence,
               .kernel = finding.kernel,
               .file = finding.file,
               .line = finding.line};
    if (!circumstances.empty()) e.sentence += fmt::format(" (Found {}.)", circumstances);
    e.numbers = {{"program_x", double(finding.program[0])},
                 {"program_y", double(finding.program[1])},
                 {"program_z", double(finding.program[2])},
                 {"index", double(finding.index)},
                 {"findings", double(report.finding_count)}};
    verdict_.evidence.push_back(std::move(e));
  }
  return true;
}

bool Trials::take_failure(const replay::Failure& failure, const std::string& circumstances) {
  const std::string when = circumstances.empty() ? "" : " " + circumstances;
  const auto sentence = [&](std::string_view what) {
    return fmt::format("{}{}: {} ({}).", what, when, failure.message, describe(failure.where));
  };
  switch (failure.kind) {
    case replay::Failure::Kind::kTimedOut:
      end(Word::kTimedOut,
          at(failure.where, "time-limit",
             sentence(fmt::format("A replay took longer than {:g} s", settings_.time_limit))));
      return true;
    case replay::Failure::Kind::kUnsupported:
      end(Word::kError, at(failure.where, "unsupported", sentence("The candidate cannot be replayed here")));
      return true;
    case replay::Failure::Kind::kRefused:
      end(Word::kDisallowed,
          at(failure.where, "refused-operator", sentence("The candidate calls what no replay runs")));
      return true;
    case replay::Failure::Kind::kRaised:
      end(Word::kUnsafe, at(failure.where, "aten-error", sentence("A call failed")));
      return true;
    case replay::Failure::Kind::kCrashed:
      end(Word::kUnsafe, at(failure.where, settings_.device == replay::Device::kCuda ? "gpu-fault" : "crash",
                            sentence("The candidate's replay crashed")));
      return true;
  }
  return false;
}

Status Trials::take_comparison(const replay::TrialReport& report, int number,
                               const std::string& circumstances) {
  const auto& comparison = *report.comparison;
  if (!comparison.defined) return ok_status();
  // On inputs that are not the task's the reference may get no digit right itself (a difference of what is
  // nearly equal).
  const auto says_nothing = [&](const replay::OutputComparison& output) {
    return output.agrees || (report.trial.kind != InputKind::kOwn && output.own_error > kNoDigit);
  };
  if (!comparison.agrees && comparison.structure.empty() &&
      std::ranges::all_of(comparison.outputs, says_nothing))
    return ok_status();
  const std::string kind(replay::to_string(report.trial.kind));
  auto& c = verdict_.coverage;
  ++c.trials, ++judged_trials_;
  constant_trials_ += comparison.constant ? 1 : 0;
  insensitive_trials_ += comparison.insensitive ? 1 : 0;
  if (std::find(c.inputs.begin(), c.inputs.end(), kind) == c.inputs.end()) c.inputs.push_back(kind);

  const std::string when = circumstances.empty() ? "" : ", " + circumstances;
  if (!comparison.structure.empty()) {
    end(Word::kMismatch, {.rule = "output-structure",
                          .sentence = fmt::format("The outputs are built otherwise than the reference's: {}.",
                                                  comparison.structure)});
    return ok_status();
  }
  for (const auto& output : comparison.outputs)
    if (output.agrees == comparison.agrees) keep_worst(output, report, number);
  if (comparison.agrees) return ok_status();
  for (size_t i = 0; i < comparison.outputs.size(); ++i) {
    const auto& output = comparison.outputs[i];
    if (output.agrees) continue;
    Evidence e{.rule = "values", .sentence = sentence_of(output) + when + "."};
    if (const auto* maker = maker_of(i)) {
      e.file = maker->place.file, e.line = maker->place.line;
      if (maker->work == Work::kTriton) e.kernel = maker->name;
    }
    e.numbers = {{"wrong", double(output.wrong)},
                 {"elements", double(output.elements)},
                 {"error", output.error},
                 {"tolerance", output.error_limit},
                 {"own_error", output.own_error},
                 {"norm_error", output.norm_error},
                 {"norm_tolerance", output.norm_limit}};
    verdict_.word = Word::kMismatch;
    verdict_.evidence.push_back(std::move(e));
  }
  if (good())
    end(Word::kMismatch, {.rule = "values", .sentence = "The outputs differ from the reference's."});
  return ok_status();
}

// Of several comparisons the one that came closest to its tolerance, or went furthest beyond.
void Trials::keep_worst(const replay::OutputComparison& output, const replay::TrialReport& report,
                        int number) {
  const double by_element = output.error_limit > 0 ? output.error / output.error_limit : 0;
  const double by_norm = output.norm_limit > 0 ? output.norm_error / output.norm_limit : 0;
  double ratio = std::max(by_element, by_norm);
  if (!output.agrees && !(ratio > 1)) ratio = 1e300;  // an infinity or a nan where none belongs
  if (ratio <= worst_ratio_) return;
  worst_ratio_ = ratio;
  const bool worst = !output.worst.empty();
  verdict_.errors = Errors{.output = output.path,
                           .position = worst ? output.worst : output.first_wrong,
                           .inputs = std::string(replay::to_string(report.trial.kind)),
                           .trial = number,
                           .expected = worst ? output.worst_want : output.first_want,
                           .got = worst ? output.worst_got : output.first_got,
                           .max_error = output.error,
                           .max_tolerance = output.error_limit,
                           .norm_error = output.norm_error,
                           .norm_tolerance = output.norm_limit};
}

// The last step of the judged forward that writes the output.
const StepFacts* Trials::maker_of(size_t output) const {
  const auto judged = static_cast<size_t>(candidate_.judged());
  const auto values = trace::tensors_in(candidate_.trace->phases[judged].output);
  if (output >= values.size()) return nullptr;
  const auto storage = candidate_.trace->values[static_cast<size_t>(values[output])].storage;
  const StepFacts* found = nullptr;
  for (const auto& step : candidate_.phases[judged].steps)
    if (std::find(step.writes.begin(), step.writes.end(), storage) != step.writes.end()) found = &step;
  return found;
}

void Trials::end(Word word, Evidence evidence) {
  verdict_.word = word;
  verdict_.evidence.push_back(std::move(evidence));
}

}  // namespace nereid::verify
