#include "nereid/verify/stages/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "nereid/base/program/interrupt.h"
#include "nereid/verify/rules/host_values.h"
#include "nereid/verify/rules/left_notes.h"
#include "nereid/verify/stages/trial_evidence.h"

namespace nereid::verify {
namespace {

using replay::InputDistribution;

constexpr std::array kOtherDistributions = {
    InputDistribution::kZeros,  InputDistribution::kOnes,     InputDistribution::kNegative,
    InputDistribution::kTiny,   InputDistribution::kHuge,     InputDistribution::kRamp,
    InputDistribution::kOneHot, InputDistribution::kOutliers, InputDistribution::kInfinities,
    InputDistribution::kNans,   InputDistribution::kFlipped,  InputDistribution::kWide,
    InputDistribution::kSmall,  InputDistribution::kLarge,    InputDistribution::kShifted,
    InputDistribution::kGrid,   InputDistribution::kFar,      InputDistribution::kClose,
    InputDistribution::kState,  InputDistribution::kLowest,   InputDistribution::kHighest,
    InputDistribution::kRedrawn};
// Where a trial takes long, those that find the most; and the first of them finds nine in ten of what the
// task's own inputs do not show. Where the reference counts so many operations, the same on every machine.
constexpr double kManyFlops = 1e11;
constexpr std::array kFastDistributions = {InputDistribution::kHuge, InputDistribution::kOutliers,
                                           InputDistribution::kNegative, InputDistribution::kRedrawn};
constexpr std::array kBriefDistributions = {InputDistribution::kHuge, InputDistribution::kRedrawn};
constexpr int64_t kLargeTask = int64_t{256} << 20;  // bytes of memory, of both workers
constexpr double kLongTrial = 3;                    // seconds
constexpr double kConfigurationLimits = 4;  // all configurations together take at most so many time limits
constexpr size_t kMaxLeftOut = 16;
constexpr int kOwnNumbers = 1000;  // of further draws of the task's own inputs
constexpr size_t kMaxFindings = 5;
constexpr int kNarrowest = 4;  // times that inputs become narrower: 2^16 times as large, then 2 times

// Of inputs; of these the state alone is drawn anew.
bool is_same_in_every_draw(InputDistribution kind) {
  using enum InputDistribution;
  return kind == kZeros || kind == kOnes || kind == kRamp || kind == kOneHot || kind == kInfinities ||
         kind == kNans || kind == kLowest || kind == kHighest;
}

bool takes_floats(const trace::Trace& trace) {
  for (const auto value : trace::tensors_in(trace.phases.back().inputs))
    if (trace::is_floating(trace.values[static_cast<size_t>(value)].dtype)) return true;
  return false;
}

uint64_t trial_seed(uint64_t seed, int draw, int number) {
  uint64_t x = seed + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(1000 * draw + number + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (x ^ (x >> 31)) >> 11;
}

}  // namespace

Trials::Trials(replay::Session& session, const TraceAnalysis& reference, const TraceAnalysis& candidate,
               const RuleReport& rules, const Settings& settings, Verdict& verdict)
    : session_(session),
      reference_(reference),
      candidate_(candidate),
      rules_(rules),
      settings_(settings),
      verdict_(verdict),
      tuned_(tuned_groups(candidate, settings.device)),
      blind_(candidate.is_value_independent()),
      floats_(takes_floats(*reference.trace)),
      brief_(settings.fast_inputs && session.facts().peak_bytes > kLargeTask) {}

Status Trials::run(int draw) {
  NEREID_TRY_STATUS(own_inputs(draw));
  if (draw > 0) return ok_status();
  if (good() && settings_.protocol == Protocol::kNereid) NEREID_TRY_STATUS(other_inputs());
  if (good() && !rules_.ignored) NEREID_TRY_STATUS(check_host_answers());
  auto& c = verdict_.coverage;
  if (judged_trials_ > 1 && constant_trials_ == judged_trials_) {
    c.degenerate = "the reference gives the same number everywhere";
  } else if (judged_trials_ > 1 && insensitive_trials_ >= judged_trials_ - 1) {
    c.degenerate = "the reference's outputs do not change with its inputs";
  }
  return ok_status();
}

Result<replay::TrialReport> Trials::one(InputDistribution kind, int number, bool checked, size_t turn,
                                        int narrowed, int deciding) {
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  const replay::Trial trial{
      .seed = (trial_seed(settings_.seed, static_cast<int>(verdict_.coverage.draws), number) & ~uint64_t{1}) |
              (turn & 1),
      .distribution = kind,
      .perturb = settings_.protocol == Protocol::kNereid,
      .gentle = gentle_,
      .narrowed = narrowed,
      .deciding = deciding,
      .sanitize = number == 0 || (checked && first_seconds_ < kLongTrial)};
  NEREID_TRY(auto report,
             session_.trial(trial, tolerance_on(kind, settings_.tolerance), settings_.within_patience()));
  allow_rebound_state(report, *reference_.trace);
  return report;
}

Status Trials::own_inputs(int draw) {
  int count = own_draws(draw);
  for (int number = 0; number < count && good(); ++number) {
    const bool more = number >= settings_.trials;  // numbered apart from trials of other kinds
    const int numbered = more ? kOwnNumbers + number : number;
    NEREID_TRY(auto report, one(InputDistribution::kOwn, numbered, !blind_ && !more));
    const bool fresh = number == 0;
    if (fresh) NEREID_TRY_STATUS(choose_perturbation(report));
    if (fresh) first_seconds_ = report.seconds_candidate + report.seconds_reference + report.seconds_oracle;
    if (report.reference_failed)
      return input_error("the reference fails: {} ({})", report.reference_failed->message,
                         describe(report.reference_failed->where));
    verdict_.coverage.sanitized |= report.trial.sanitize && settings_.device == replay::Device::kCpu;
    verdict_.coverage.fenced |= report.trial.sanitize && settings_.device == replay::Device::kCuda;
    const bool written = changes_memory(report);
    if (report.failed || !report.findings.empty() || (written && !rules_.ignored)) {
      NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
      break;
    }
    // Whether the kernels matter comes before whether they are right, where there is something to compare.
    const bool comparable = !report.comparison || report.comparison->structure.empty();
    if (fresh && draw == 0 && comparable && !rules_.ignored) {
      NEREID_TRY_STATUS(leave_out(report));
      if (!good()) break;
    }
    NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
    if (draw == 0 && !fresh && draws_again(report)) ++count;
    if (fresh && draw == 0 && good()) NEREID_TRY_STATUS(configurations(InputDistribution::kOwn, number));
    if (fresh && draw == 0 && good()) NEREID_TRY_STATUS(tuning(InputDistribution::kOwn, number));
  }
  return ok_status();
}

Result<LeftOut> Trials::without(std::vector<int> steps) {
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  NEREID_TRY(const auto report, session_.leave_out(steps, settings_.within_patience()));
  LeftOut trial{.steps = std::move(steps), .outputs_changed = report.outputs_changed, .all = false};
  if (report.failed) {
    const auto& judged = candidate_.trace->phases.at(static_cast<size_t>(candidate_.judged()));
    trial.outputs_changed.assign(trace::tensors_in(judged.output).size(), true);
  }
  return trial;
}

Status Trials::leave_out(const replay::TrialReport& whole) {
  std::vector<LeftOut> found;
  std::vector<bool> changed;
  size_t tried = 0;  // launches
  for (const auto& steps : launches_to_leave_out(candidate_, rules_.live_launches, kMaxLeftOut)) {
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
  for (const auto& work : whole.work) ran_.push_back({work.step, work.flops, work.bytes});
  auto report = check_effects(reference_, candidate_, settings_.policy, found, ran_);
  verdict_.coverage.triton_share = report.triton_share;
  verdict_.remarks.insert(verdict_.remarks.end(), report.remarks.begin(), report.remarks.end());
  if (!report.broken.empty()) {
    verdict_.kind = VerdictKind::kDisallowed;
    verdict_.evidence = std::move(report.broken);
  }
  return ok_status();
}

// What mixes elements (a row's sum decides all of the row) is seen few times in one draw of a distribution:
// there each is drawn twice, where that costs little. In pointwise work each element is a draw of its own.
Status Trials::other_inputs() {
  const bool few =
      settings_.fast_inputs || first_seconds_ > kLongTrial || reference_.judged_flops() > kManyFlops;
  const std::span<const InputDistribution> kinds =
      brief_ ? std::span<const InputDistribution>(kBriefDistributions)
      : few  ? std::span<const InputDistribution>(kFastDistributions)
             : std::span<const InputDistribution>(kOtherDistributions);
  int number = settings_.trials;
  const size_t times = !few && is_cheap() && (has_small_outputs() || mixes_elements()) ? 2 : 1;
  for (size_t i = 0; i < times * kinds.size() && good(); ++i) {
    const auto kind = kinds[i % kinds.size()];
    if (i >= kinds.size() && is_same_in_every_draw(kind) && !session_.facts().state) continue;
    if (kind >= InputDistribution::kLowest && !session_.facts().integer_inputs) continue;
    if (kind == InputDistribution::kState && !session_.facts().state) continue;
    NEREID_TRY_STATUS(other_inputs_of(kind, ++number, i / kinds.size()));
  }
  const int sides = sides_to_try(*reference_.trace, is_cheap(), brief_);
  for (int side = 1; side <= sides && good(); ++side)
    NEREID_TRY_STATUS(other_inputs_of(InputDistribution::kState, ++number, 0, side));
  return ok_status();
}

// Infinities and NaNs that differ are overflow's where narrower inputs have none.
Status Trials::other_inputs_of(InputDistribution kind, int number, size_t turn, int deciding) {
  const bool finds_most = kind == InputDistribution::kHuge || kind == InputDistribution::kOutliers;
  for (int narrowed = 0; good() && (narrowed == 0 || overflown_ > 0); ++narrowed) {
    overflown_ = 0;
    NEREID_TRY(const auto report, one(kind, number, !blind_, turn, narrowed, deciding));
    NEREID_TRY([[maybe_unused]] const bool agreed, take(report, number));
    if (good() && finds_most && turn == 0 && report.applicable && !report.reference_failed)
      NEREID_TRY_STATUS(configurations(kind, number));
    if (good() && overflown_ > 0 && narrowed == kNarrowest)
      end(VerdictKind::kMismatch,
          {.rule = "values",
           .sentence = fmt::format("{} elements are other infinities or NaNs than the reference's, on input "
                                   "distribution '{}' and narrower ones.",
                                   overflown_, replay::to_string(kind))});
  }
  return ok_status();
}

Status Trials::configurations(InputDistribution kind, int number) {
  auto& counted = verdict_.coverage.alternatives_run;
  const bool first = !std::exchange(configurations_counted_, true);
  if (first) {
    counted = rules_.alternatives;  // what is equal to another counts with it
    for (const auto& group : tuned_)
      for (const auto& option : group.options) counted -= option.equals;
  }
  const auto run = [&](const OptionChoice& choice, bool digests) -> Result<ConfigurationRun> {
    const auto config = describe_choice(tuned_, choice);
    NEREID_TRY(auto done,
               run_configuration({.choices = choices_of(tuned_, choice), .digests = digests}, kind, number,
                                 config.empty() ? "" : fmt::format("with the configuration {}", config)));
    const auto chosen = std::ranges::count_if(choice, [](int option) { return option > 0; });
    for (size_t g = 0; g < tuned_.size(); ++g)
      if (first && chosen == 1 && choice[g] > 0 && done.end == ConfigurationRun::End::kAgrees)
        counted += tuned_[g].options[static_cast<size_t>(choice[g]) - 1].equals;
    return done;
  };
  NEREID_TRY([[maybe_unused]] const auto all, run_configurations(tuned_, run));
  return ok_status();
}

Status Trials::tuning(InputDistribution kind, int number) {
  for (const auto& run : tuning_runs(candidate_, settings_.device)) {
    NEREID_TRY(const auto done,
               run_configuration(run, kind, number,
                                 "in the call that tunes, where an autotuner runs each configuration on the "
                                 "same memory (reset_to_zero and restore_value undo what a run leaves)"));
    if (done.end == ConfigurationRun::End::kStop) break;
  }
  return ok_status();
}

Result<ConfigurationRun> Trials::run_configuration(const replay::ConfiguredRun& run, InputDistribution kind,
                                                   int number, const std::string& circumstances) {
  using End = ConfigurationRun::End;
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  if (configuration_seconds_ > kConfigurationLimits * settings_.time_limit) {
    end_by_configurations(kind);
    return ConfigurationRun{End::kStop};
  }
  const Stopwatch watch;
  NEREID_TRY(auto report, session_.try_alternatives(run, tolerance_on(kind, settings_.tolerance),
                                                    settings_.within_patience()));
  allow_rebound_state(report, *reference_.trace);
  configuration_seconds_ += watch.seconds();
  ++configurations_run_;
  // A configuration that the GPU cannot run is passed over, as Triton's autotuner does.
  if (settings_.device == replay::Device::kCuda && report.failed &&
      report.failed->kind == replay::Failure::Kind::kUnsupported)
    return ConfigurationRun{End::kCannotRun};
  NEREID_TRY(const bool agreed, take(report, number, circumstances));
  return ConfigurationRun{agreed ? End::kAgrees : End::kStop, std::move(report.left)};
}

void Trials::end_by_configurations(InputDistribution kind) {
  size_t options = 0;
  for (const auto& group : tuned_) options += group.options.size();
  end(VerdictKind::kTimedOut,
      {.rule = "configurations",
       .sentence = fmt::format(
           "There are {} different configurations{} to run; {} s were enough for {} runs, the last "
           "on input distribution '{}'. Offer fewer, or raise --time-limit: {:g} times that is what all "
           "may take.",
           options, tuned_.size() > 1 ? fmt::format(" of {} autotuned kernels", tuned_.size()) : "",
           std::lround(configuration_seconds_), configurations_run_, replay::to_string(kind),
           kConfigurationLimits)});
}

Status Trials::check_host_answers() {
  if (std::ranges::none_of(candidate_.trace->storages, &trace::Storage::pinned)) return ok_status();
  NEREID_TRY(const auto unmoved, session_.unmoved(settings_.within_patience()));
  const auto found = answered_by_host(candidate_, unmoved);
  if (!found) return ok_status();
  Evidence e{.rule = "host-computed", .sentence = found->sentence};
  if (found->step != nullptr) {
    e.file = found->step->place.file, e.line = found->step->place.line;
    if (found->step->work == Work::kTriton) e.kernel = found->step->name;
  }
  end(VerdictKind::kDisallowed, std::move(e));
  return ok_status();
}

Result<bool> Trials::take(const replay::TrialReport& report, int number, const std::string& circumstances) {
  if (!report.applicable) return true;
  if (report.reference_failed) {
    if (report.trial.distribution != InputDistribution::kOwn)
      return true;  // the reference is not for such inputs
    return input_error("the reference fails: {} ({})", report.reference_failed->message,
                       describe(report.reference_failed->where));
  }
  // An index made from such an input may lie anywhere.
  const bool any_sign = report.trial.distribution == InputDistribution::kFlipped ||
                        report.trial.distribution == InputDistribution::kLarge ||
                        (report.trial.distribution == InputDistribution::kFar && floats_);
  if (any_sign && (report.failed || !report.findings.empty())) return true;
  // Nor is an order that a NaN makes: what compares with it ranks several elements alike.
  if (report.trial.distribution == InputDistribution::kNans && !report.findings.empty() &&
      std::ranges::all_of(report.findings, [](const ttir::Finding& finding) {
        return finding.kind == ttir::FindingKind::kOrderDependent;
      }))
    return true;
  std::string when = circumstances;
  if (report.trial.distribution != InputDistribution::kOwn)
    when += fmt::format("{}on input distribution '{}'", when.empty() ? "" : " ",
                        replay::to_string(report.trial.distribution));
  if (report.failed && take_failure(*report.failed, when)) return false;
  if (!report.inputs_written.empty() && !rules_.ignored) {
    end(VerdictKind::kDisallowed,
        {.rule = "input-written",
         .sentence = fmt::format("forward writes {}, which the reference leaves alone.",
                                 report.inputs_written.front())});
    return false;
  }
  if (!report.state_written.empty() && !rules_.ignored) {
    end(VerdictKind::kDisallowed,
        {.rule = "state-written",
         .sentence = fmt::format("forward changes {}, which the reference's leaves alone.",
                                 fmt::join(report.state_written, ", "))});
    return false;
  }
  if (!report.not_as_found.empty() && !rules_.ignored) {
    end(VerdictKind::kDisallowed, not_as_found(candidate_, report.not_as_found.front(), when));
    return false;
  }
  if (take_findings(report, when)) return false;
  if (!report.changing_casts.empty() && !rules_.ignored) {
    auto broken = check_casts(reference_, candidate_, settings_.policy, report.changing_casts, ran_);
    for (auto& evidence : broken) end(VerdictKind::kDisallowed, std::move(evidence));
    if (!broken.empty()) return false;
  }
  if (!report.comparison) return our_error("a replay ended without a comparison");
  NEREID_TRY_STATUS(take_comparison(report, number, when));
  return good();
}

bool Trials::take_findings(const replay::TrialReport& report, const std::string& circumstances) {
  if (report.findings.empty()) return false;
  verdict_.kind = VerdictKind::kUnsafe;
  for (size_t i = 0; i < std::min(kMaxFindings, report.findings.size()); ++i) {
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
      end(VerdictKind::kTimedOut,
          evidence_at(failure.where, "time-limit",
                      sentence(fmt::format("A replay took longer than {:g} s", settings_.time_limit))));
      return true;
    case replay::Failure::Kind::kUnsupported:
      end(VerdictKind::kError,
          evidence_at(failure.where, "unsupported", sentence("The candidate cannot be replayed here")));
      return true;
    case replay::Failure::Kind::kRefused:
      end(VerdictKind::kDisallowed, evidence_at(failure.where, "refused-operator",
                                                sentence("The candidate calls what no replay runs")));
      return true;
    case replay::Failure::Kind::kRaised:
      end(VerdictKind::kUnsafe, evidence_at(failure.where, "aten-error", sentence("A call failed")));
      return true;
    case replay::Failure::Kind::kCrashed:
      end(VerdictKind::kUnsafe,
          evidence_at(failure.where, settings_.device == replay::Device::kCuda ? "gpu-fault" : "crash",
                      sentence("The candidate's replay crashed")));
      return true;
  }
  return false;
}

Status Trials::take_comparison(const replay::TrialReport& report, int number,
                               const std::string& circumstances) {
  const auto& comparison = *report.comparison;
  overflown_ += comparison.overflown;
  if (!comparison.defined) return ok_status();
  // On inputs that are not the task's the reference may get no digit right itself (a difference of what is
  // nearly equal).
  const auto is_bare_string = [&](const replay::OutputComparison& output) {
    return output.agrees ||
           (report.trial.distribution != InputDistribution::kOwn && output.own_error > kNoDigit);
  };
  if (!comparison.agrees && comparison.structure.empty() &&
      std::ranges::all_of(comparison.outputs, is_bare_string))
    return ok_status();
  const std::string kind(replay::to_string(report.trial.distribution));
  auto& c = verdict_.coverage;
  ++c.trials, ++judged_trials_;
  constant_trials_ += comparison.constant ? 1 : 0;
  insensitive_trials_ += comparison.insensitive ? 1 : 0;
  if (std::find(c.inputs.begin(), c.inputs.end(), kind) == c.inputs.end()) c.inputs.push_back(kind);

  const std::string when = circumstances.empty() ? "" : ", " + circumstances;
  if (!comparison.structure.empty()) {
    end(VerdictKind::kMismatch,
        {.rule = "output-structure",
         .sentence =
             fmt::format("The outputs are built otherwise than the reference's: {}.", comparison.structure)});
    return ok_status();
  }
  for (const auto& output : comparison.outputs)
    if (output.agrees == comparison.agrees) keep_worst(output, report, number);
  if (comparison.agrees) return ok_status();
  for (size_t i = 0; i < comparison.outputs.size(); ++i) {
    const auto& output = comparison.outputs[i];
    if (output.agrees) continue;
    Evidence e{.rule = "values", .sentence = sentence_of(output) + when + "."};
    if (const auto* maker = maker_of(candidate_, i)) {
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
    verdict_.kind = VerdictKind::kMismatch;
    verdict_.evidence.push_back(std::move(e));
  }
  if (good())
    end(VerdictKind::kMismatch, {.rule = "values", .sentence = "The outputs differ from the reference's."});
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
                           .inputs = std::string(replay::to_string(report.trial.distribution)),
                           .trial = number,
                           .expected = worst ? output.worst_want : output.first_want,
                           .got = worst ? output.worst_got : output.first_got,
                           .max_error = output.error,
                           .max_tolerance = output.error_limit,
                           .norm_error = output.norm_error,
                           .norm_tolerance = output.norm_limit};
}

void Trials::end(VerdictKind kind, Evidence evidence) {
  verdict_.kind = kind;
  verdict_.evidence.push_back(std::move(evidence));
}

}  // namespace nereid::verify
