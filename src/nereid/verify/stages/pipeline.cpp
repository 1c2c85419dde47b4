#include "nereid/verify/stages/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "nereid/base/hash.h"
#include "nereid/base/program/included_files.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/replay/known_reference.h"
#include "nereid/trace/format/codec.h"
#include "nereid/verify/batch/answer.h"
#include "nereid/verify/feedback.h"
#include "nereid/verify/rules/catalogue.h"
#include "nereid/verify/stages/kept_traces.h"
#include "nereid/verify/stages/references.h"
#include "nereid/verify/stages/refusal.h"
#include "nereid/verify/stages/replay_stage.h"
#include "nereid/verify/stages/shrink.h"

namespace nereid::verify {
namespace {

constexpr int kDraws = 3;                // traces of a candidate whose host code reads integer inputs
constexpr double kTracerStart = 300;     // seconds that a worker may take to be warm
constexpr double kMaxFlopsOnCpu = 2e11;  // of one call: with the sanitizer, a minute or so for all trials
// What a task may cost after --shrink: comfortable for a CPU.
constexpr Goal kShrunk{.bytes = 256e6, .flops = 2e9};

std::string cache_key(const Pair& pair, uint64_t draw, const Sizes& sizes, bool other_numbers = false) {
  std::string key = fmt::format("{}:{}:{}", sha256_hex(pair.reference_source), pair.reference_name, draw);
  if (other_numbers) key += ":other_numbers";
  for (const auto& [name, size] : sizes) key += fmt::format(":{}={}", name, size);
  return key;
}

// What the trace says, however long it took to make.
std::string canonical_bytes(trace::Trace& trace) {
  const double seconds = std::exchange(trace.seconds, 0);
  std::string bytes = trace::serialize(trace);
  trace.seconds = seconds;
  return bytes;
}

bool holds_float(const trace::Arg& arg) {
  if (const auto* list = std::get_if<trace::List>(&arg.node))
    return std::ranges::any_of(list->items, holds_float);
  if (const auto* dict = std::get_if<trace::Dict>(&arg.node))
    return std::ranges::any_of(dict->items, holds_float, &trace::DictItem::second);
  return std::holds_alternative<double>(arg.node);
}

std::vector<std::vector<int64_t>> output_sizes(const Traced& traced) {
  std::vector<std::vector<int64_t>> sizes;
  const auto& forward = traced.trace.phases.at(static_cast<size_t>(traced.facts.judged()));
  for (const auto value : trace::tensors_in(forward.output))
    sizes.push_back(traced.trace.values[static_cast<size_t>(value)].sizes);
  return sizes;
}

bool host_reads_integers(const trace::Trace& trace) {
  return std::any_of(trace.storages.begin(), trace.storages.end(),
                     [](const trace::Storage& s) { return s.pinned; });
}

}  // namespace

struct JudgeState {
  VerifierBackends backends;
  Settings settings;
  KeptTraces kept{settings.traces};
  References references{};
  std::mutex mutex{};
  std::map<std::string, std::shared_ptr<replay::KnownReference>> known{};  // by cache_key, with time_only

  Result<tracer::TraceAnswer> trace(const tracer::TraceRequest& request,
                                    Deadline deadline = Deadline::never()) {
    // For a free place, a warm worker, and a child whose limit a loaded machine extends.
    const Deadline patience = Deadline::after(2 * kMaxLimitExtension * request.seconds + kTracerStart);
    return backends.trace(request, Deadline::earlier(deadline, patience));
  }

  Result<std::shared_ptr<const Traced>> reference(const Pair& pair, uint64_t draw, const Sizes& sizes,
                                                  bool other_numbers = false) {
    const std::string key = cache_key(pair, draw, sizes, other_numbers);
    return references.get(key, [&]() -> Result<std::shared_ptr<const Traced>> {
      if (settings.time_only)
        if (auto trace = kept.take(sha256_hex(key))) return facts_of_reference(std::move(*trace));
      tracer::TraceRequest request;
      request.source = pair.reference_source, request.path = pair.reference_name,
      request.class_name = "Model";
      request.draw = draw, request.globals = sizes, request.seconds = std::max(60.0, settings.time_limit);
      request.other_numbers = other_numbers;
      NEREID_TRY(auto answer, trace(request));
      auto* trace = std::get_if<trace::Trace>(&answer);
      if (trace == nullptr) {
        const auto ended = refusal(answer);
        return input_error(
            "the reference {}: {}{}", pair.reference_name, ended.evidence.sentence,
            ended.evidence.line > 0 ? fmt::format(" ({}:{})", ended.evidence.file, ended.evidence.line) : "");
      }
      if (!settings.time_only) kept.keep(sha256_hex(key), canonical_bytes(*trace));
      return facts_of_reference(std::move(*trace));
    });
  }

  Result<std::shared_ptr<const Traced>> facts_of_reference(trace::Trace trace) const {
    auto traced = std::make_shared<Traced>();
    traced->trace = std::move(trace);
    NEREID_TRY(traced->facts, backends.analyze(traced->trace));
    if (traced->facts.judged() < 0) return our_error("the reference's trace holds no forward");
    return std::shared_ptr<const Traced>(std::move(traced));
  }
};

namespace {

// Runs the stages for one pair. Members are what a stage leaves for the next.
class VerificationRun {
 public:
  enum class Rules { kDecide, kIgnored };

  VerificationRun(JudgeState& state, const Pair& pair, Rules rules)
      : state_(state), pair_(pair), settings_(settings_for(state.settings, pair)) {
    verdict_.reference = pair.reference_name, verdict_.candidate = pair.candidate_name;
    rules_.ignored = rules == Rules::kIgnored;
    if (settings_.protocol == Protocol::kKernelBench) {
      if (!pair.settings.trials) settings_.trials = kKernelBenchTrials;
      settings_.tolerance.kernelbench = true;
    }
    verdict_.protocol = to_string(settings_.protocol);
    work_.limit = settings_.whole_limit();
    verdict_.policy = to_string(settings_.policy);
    verdict_.seed = settings_.seed;
  }

  Verdict run() {
    // What is thrown here was caused by one candidate and must not end the others' verdicts.
    try {
      const auto done = run_stages();
      if (!done.ok()) end(fault(done.error()));
      if (settings_.deadline.passed()) broken_off();
    } catch (const std::exception& thrown) {
      verdict_.kind = VerdictKind::kError;
      verdict_.evidence = {{.rule = "internal", .sentence = fmt::format("Unexpected: {}.", thrown.what())}};
    }
    add_source_lines(verdict_, source_);
    return std::move(verdict_);
  }

 private:
  using Step = Result<bool>;  // true: go on; false: the verdict is there

  Step run_stages() {
    NEREID_TRY(bool on, source());
    if (on) {
      NEREID_TRY(on, sizes());
    }
    for (int number = 0, draws = 1; on && number < draws; ++number) {
      NEREID_TRY(on, draw(number));
      // Other draws were judged where this was; the first is timed.
      if (number == 0 && on && !settings_.time_only) draws = several_draws();
    }
    return on;
  }

  // Whatever was cut short by the deadline looks like a fault, a slow candidate, or one that passed what was
  // left out. A verdict that was found in time stays.
  void broken_off() {
    if (verdict_.kind != VerdictKind::kError && verdict_.kind != VerdictKind::kTimedOut &&
        verdict_.kind != VerdictKind::kVerified)
      return;
    verdict_.input_to_blame = false;
    verdict_.evidence.clear();
    end({VerdictKind::kError,
         {.rule = "budget", .sentence = "The time given for a verdict was over before it was there."}});
  }

  bool end(Refusal ended) {
    verdict_.kind = ended.kind;
    verdict_.input_to_blame = ended.input_to_blame;
    verdict_.evidence.push_back(std::move(ended.evidence));
    return false;
  }

  Step source() {
    const auto answer = pair_.form == Pair::Form::kSource   ? read_source(pair_.candidate_text)
                        : pair_.form == Pair::Form::kAnswer ? read_answer(pair_.candidate_text)
                                                            : read_either(pair_.candidate_text);
    if (const auto* none = std::get_if<NoCode>(&answer))
      return end({VerdictKind::kMalformed,
                  {.rule = none->rule, .sentence = none->reason, .file = pair_.candidate_name}});
    const auto& code = std::get<Code>(answer);
    source_ = code.source;
    verdict_.code = code.code, verdict_.plan = code.plan;
    return device();
  }

  // The processes of a run are for one device and the CPU.
  Step device() {
    if (settings_.device == state_.settings.device || settings_.device == replay::Device::kCpu) return true;
    return end(
        {VerdictKind::kError,
         {.rule = "no-gpu", .sentence = "The pair asks for a GPU, and this run judges on the CPU alone."},
         true});
  }

  Step sizes() {
    sizes_ = pair_.sizes;
    if (!settings_.shrink || !sizes_.empty()) return true;
    const auto probe = [&](const Sizes& sizes) -> Result<Probe> {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      const auto reference = state_.reference(pair_, draw_seed(0), sizes);
      if (!reference.ok()) {
        if (reference.error().blame == Blame::kInput && !sizes.empty()) return Probe{};
        return reference.error();
      }
      NEREID_TRY(const auto answer,
                 state_.trace(candidate_request(**reference, draw_seed(0), sizes), settings_.deadline));
      // A candidate that cannot be traced at its own sizes gets its verdict in a later stage.
      const bool legal = std::holds_alternative<trace::Trace>(answer) || sizes.empty();
      return cost_of(**reference, legal);
    };
    const auto found = find_smaller_sizes(module_constants(pair_.reference_source), probe, kShrunk);
    if (!found.ok() && found.error().blame == Blame::kInput)
      return end({VerdictKind::kError, {.rule = "shrink", .sentence = found.error().message}, true});
    if (!found.ok()) return found.error();
    verdict_.coverage.shrunk = *found;
    for (const auto& s : *found) sizes_[s.constant] = s.to;
    return true;
  }

  static Probe cost_of(const Traced& reference, bool legal) {
    Probe probe{.legal = legal};
    for (const auto& storage : reference.trace.storages) probe.bytes += static_cast<double>(storage.bytes);
    for (const auto& step : reference.facts.phases.at(static_cast<size_t>(reference.facts.judged())).steps)
      probe.flops += step.flops;
    return probe;
  }

  // From the second draw on with other Python floats among the inputs, if the reference takes them and its
  // outputs keep their shapes.
  Result<std::shared_ptr<const Traced>> reference_of(int number) {
    other_numbers_ = number > 0 && takes_numbers();
    if (other_numbers_) {
      auto varied = state_.reference(pair_, draw_seed(number), sizes_, true);
      if (varied.ok() && output_sizes(**varied) == output_sizes(*reference_)) return varied;
      if (!varied.ok() && varied.error().blame != Blame::kInput) return varied.error();
      other_numbers_ = false;
    }
    return state_.reference(pair_, draw_seed(number), sizes_);
  }

  bool takes_numbers() const {
    return settings_.protocol != Protocol::kKernelBench &&
           holds_float(reference_->trace.phases.at(static_cast<size_t>(reference_->facts.judged())).inputs);
  }

  Step draw(int number) {
    verdict_.coverage.draws = number + 1;
    const Stopwatch reference;
    NEREID_TRY(reference_, reference_of(number));
    spend("reference", reference);
    const Stopwatch tracing;
    NEREID_TRY(bool on, candidate(number));
    spend("candidate", tracing);
    if (on) {
      NEREID_TRY(on, rules(number));
    }
    if (on) {
      NEREID_TRY(on, replays(number));
    }
    if (!on && other_numbers_ && verdict_.kind != VerdictKind::kVerified && !verdict_.evidence.empty())
      verdict_.evidence.front().sentence += " Python floats among the inputs were others than the task's.";
    if (on && number == 0 && !settings_.time_only && !settings_.traces.empty())
      state_.kept.keep(verdict_.trace, canonical_bytes(candidate_.trace));
    if (on) compile_ahead();
    return on;
  }

  // An error here shows again when the candidate is timed.
  void compile_ahead() {
    if (settings_.compile_for == 0 || settings_.device != replay::Device::kCpu || !state_.backends.compile)
      return;
    const Stopwatch compiling;
    for (const Traced* traced : {reference_.get(), static_cast<const Traced*>(&candidate_)})
      (void)state_.backends.compile(traced->trace, settings_.within_patience(300));
    spend("compile", compiling);
  }

  void spend(const char* phase, const Stopwatch& watch, double less = 0) {
    verdict_.phases[phase] += watch.seconds() - less;
  }

  uint64_t draw_seed(int number) const {
    return (settings_.seed + 1000003 * static_cast<uint64_t>(number)) & 0x7fffffff;
  }

  int several_draws() const {
    if (host_reads_integers(candidate_.trace) || host_reads_integers(reference_->trace)) return kDraws;
    return takes_numbers() ? 2 : 1;
  }

  tracer::TraceRequest candidate_request(const Traced& reference, uint64_t draw, const Sizes& sizes) const {
    tracer::TraceRequest request;
    request.source = with_files_of(source_, pair_.reference_source), request.path = pair_.candidate_name,
    request.class_name = "ModelNew";
    request.draw = draw, request.globals = sizes, request.reference = &reference.trace,
    request.seconds = settings_.time_limit;
    return request;
  }

  Step candidate(int number) {
    auto kept = settings_.time_only ? state_.kept.take(pair_.trace, pair_.trace) : std::nullopt;
    if (kept) {
      candidate_.trace = std::move(*kept);
    } else {
      NEREID_TRY(auto answer,
                 state_.trace(candidate_request(*reference_, draw_seed(number), sizes_), settings_.deadline));
      auto* trace = std::get_if<trace::Trace>(&answer);
      // Raising for other numbers than the task's is as good as computing with them.
      if (other_numbers_ && std::holds_alternative<tracer::Untraceable>(answer)) return false;
      if (trace == nullptr) return end(refusal(answer));
      candidate_.trace = std::move(*trace);
    }
    NEREID_TRY(candidate_.facts, state_.backends.analyze(candidate_.trace));
    if (candidate_.facts.judged() < 0)
      return end(
          {VerdictKind::kUntraceable, {.rule = "not-traceable", .sentence = "The trace holds no forward."}});
    if (number == 0 && sizes_.empty() && pair_.traced) pair_.traced(candidate_.facts);
    if (number > 0) return true;
    verdict_.trace = kept ? pair_.trace : sha256_hex(canonical_bytes(candidate_.trace));
    if (pair_.trace.empty() || pair_.trace == verdict_.trace) return true;
    return end({VerdictKind::kDisallowed,
                {.rule = "another-trace",
                 .sentence = fmt::format(
                     "The trace has the digest {:.12}..., the one that was judged before {:.12}...",
                     verdict_.trace, pair_.trace)}});
  }

  Step rules(int number) {
    const bool ignored = rules_.ignored;
    rules_ = check_rules(reference_->facts, candidate_.facts, settings_.policy);
    rules_.ignored = ignored;
    forbid(settings_.forbid, rules_);
    if (ignored) std::erase_if(rules_.broken, [](const Evidence& e) { return !protects(e.rule); });
    if (number == 0) {
      auto& c = verdict_.coverage;
      c.kernels = rules_.kernels, c.launches = rules_.launches, c.alternatives = rules_.alternatives;
      c.triton_share = rules_.triton_share, c.frozen_parameters = rules_.frozen_parameters;
      c.reused_output = rules_.reused_output;
      verdict_.remarks = rules_.remarks;
    }
    if (rules_.broken.empty()) return kernels_are_readable();
    const auto* rule = find_rule(rules_.broken.front().rule);
    const bool unsafe = rule != nullptr && rule->kind == VerdictKind::kUnsafe;
    verdict_.kind = unsafe ? VerdictKind::kUnsafe : VerdictKind::kDisallowed;
    verdict_.evidence = rules_.broken;
    return false;
  }

  bool kernels_are_readable() {
    for (size_t k = 0; k < candidate_.facts.kernels.size(); ++k) {
      const auto& facts = candidate_.facts.kernels[k];
      if (facts.unreadable.empty()) continue;
      const auto& kernel = candidate_.trace.kernels[k];
      bool malformed = facts.malformed;
      if (malformed && state_.backends.triton_reads) {
        const auto taken = state_.backends.triton_reads(kernel);
        malformed = taken.ok() && !*taken;
      }
      return end({malformed ? VerdictKind::kCompileFailed : VerdictKind::kError,
                  {.rule = malformed ? "malformed-ttir" : "unsupported",
                   .sentence = fmt::format("Kernel {} cannot be run: {}.", kernel.name, facts.unreadable),
                   .kernel = kernel.name,
                   .file = kernel.place.file,
                   .line = kernel.place.line}});
    }
    return true;
  }

  // Races and uninitialized reads show on the CPU, where every access is checked: before a GPU's
  // replays, small tasks are replayed there.
  Step replays(int number) {
    if (settings_.device == replay::Device::kCuda && !settings_.time_only && small_enough_for_a_cpu()) {
      Settings on_cpu = settings_;
      on_cpu.device = replay::Device::kCpu, on_cpu.time = false;
      on_cpu.trials = 1, on_cpu.fast_inputs = true;  // for the sanitizer; values are judged on the GPU
      const Stopwatch watch;
      Replayed replayed = replay_on_device(on_cpu, number);
      const double spent = watch.seconds();
      if (interrupted() || settings_.deadline.passed()) return take(std::move(replayed));
      if (replayed.status.ok() && replayed.verdict.kind != VerdictKind::kError) {
        if (replayed.verdict.kind != VerdictKind::kVerified) return take(std::move(replayed));
        replayed.verdict.phases = std::move(verdict_.phases);
        verdict_ = std::move(replayed.verdict);
      }
      verdict_.phases["cpu"] += spent;
    }
    if (settings_.device == replay::Device::kCpu && reference_->facts.judged_flops() > kMaxFlopsOnCpu)
      return end(
          {VerdictKind::kError,
           {.rule = "too-big",
            .sentence = fmt::format(
                "The task computes {:.3g} GFLOP a call, a replay on a CPU at most {:.3g}: judge it on a "
                "GPU, or at smaller sizes with --shrink.",
                reference_->facts.judged_flops() / 1e9, kMaxFlopsOnCpu / 1e9)}});
    return take(replay_on_device(settings_, number));
  }

  bool small_enough_for_a_cpu() const {
    constexpr double kBytes = 256e6, kFlops = 2e9;
    for (const TraceAnalysis* facts : {&reference_->facts, &candidate_.facts}) {
      double bytes = 0;
      for (const auto& storage : facts->trace->storages) bytes += static_cast<double>(storage.bytes);
      if (bytes > kBytes || facts->judged_flops() > kFlops) return false;
    }
    return true;
  }

  // A fault that is not the candidate's is tried once more from the same verdict, with the device's memory to
  // itself: the fault may have been that others' sessions held it.
  Replayed replay_on_device(const Settings& settings, int number) {
    const double work_before = work_.seconds;
    for (bool again = false;;) {
      const size_t known = work_.fatal_without.size();
      Replayed done = ReplayStage(state_.backends, settings, *reference_, candidate_, rules_, work_, [this] {
                        return known_reference();
                      }).run(verdict_, number, again);
      // A launch that cannot be left out has become known: that is no second try of the same.
      const bool learnt = work_.fatal_without.size() > known;
      const bool ours =
          done.status.ok() ? time_is_impossible(done.verdict) : done.status.error().blame == Blame::kOurs;
      if (!ours || (again && !learnt) || interrupted() || settings.deadline.passed()) return done;
      work_.seconds = work_before;
      again |= !learnt;
    }
  }

  static bool time_is_impossible(const Verdict& verdict) {
    return verdict.kind == VerdictKind::kError && verdict.evidence.back().rule == "below-roofline";
  }

  // Of candidates that are timed alone: what their sessions share of the reference. Null for others.
  std::shared_ptr<replay::KnownReference> known_reference() {
    if (!settings_.time_only) return nullptr;
    const std::lock_guard lock(state_.mutex);
    auto& place = state_.known[cache_key(pair_, draw_seed(0), sizes_)];
    if (!place) place = std::make_shared<replay::KnownReference>();
    return place;
  }

  Step take(Replayed replayed) {
    verdict_ = std::move(replayed.verdict);
    if (!replayed.status.ok()) return replayed.status.error();
    return verdict_.kind == VerdictKind::kVerified;
  }

  JudgeState& state_;
  const Pair& pair_;
  Verdict verdict_;
  Settings settings_;
  std::string source_;
  Sizes sizes_;
  std::shared_ptr<const Traced> reference_;
  bool other_numbers_ = false;  // of the present draw: Python floats are others than the task's
  Traced candidate_;
  RuleReport rules_;
  CandidateWork work_;
};

}  // namespace

Judge::Judge(VerifierBackends backends, Settings settings)
    : state_(std::make_unique<JudgeState>(std::move(backends), settings)) {}
Judge::~Judge() = default;

const Settings& Judge::settings() const { return state_->settings; }

Verdict Judge::judge(const Pair& pair) {
  const Stopwatch watch;
  Verdict verdict = VerificationRun(*state_, pair, VerificationRun::Rules::kDecide).run();
  if (verdict.kind == VerdictKind::kDisallowed && settings_for(state_->settings, pair).ignore_rules) {
    Verdict other = VerificationRun(*state_, pair, VerificationRun::Rules::kIgnored).run();
    verdict.without_rules = Verdict::WithoutRules{.kind = other.kind, .times = std::move(other.times)};
  }
  verdict.seconds = watch.seconds();
  return verdict;
}

}  // namespace nereid::verify
