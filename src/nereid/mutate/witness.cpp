#include "nereid/mutate/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/base/program/interrupt.h"
#include "nereid/mutate/witness_inputs.h"
#include "nereid/verify/stages/trials.h"

namespace nereid::mutate {
namespace {

using replay::InputDistribution;
using replay::OutputComparison;

constexpr uint64_t kFirstSeed = 0x5eed'0000'0001;  // verdicts use others
constexpr int kOwnSeeds = 5, kSeedsEach = 2;
constexpr int kKernelBenchInputs = 5;
constexpr double kGrossError = 0.05, kAbsolute = 1e-3;  // of a number itself; plain
constexpr double kGraveFactor = 1000;  // times the limit: no conditioning of the task explains that
constexpr double kNoDigit = 0.1;  // a reference's own error on other inputs: such an output is not compared
constexpr double kTrialSeconds = 120;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
// A factor under which nothing disagrees, so that nothing is spent on measuring the reference's own error
// better.
constexpr double kAnyError = 1e30;
// Of an input kind's name, those that the search tries besides its own.
constexpr const char* kKinds[] = {"negative", "outliers", "huge", "ramp", "one_hot",
                                  "tiny",     "flipped",  "ones", "zeros"};

double epsilon_of(const std::string& dtype) {
  if (dtype == "f16") return 0x1p-10;
  if (dtype == "bf16") return 0x1p-7;
  if (dtype == "f64" || dtype == "c128") return 0x1p-45;  // its own error cannot be measured
  if (dtype.starts_with("f8")) return 0x1p-2;
  return 0x1p-23;
}

bool is_whole(const std::string& dtype) {
  return dtype == "bool" || dtype.starts_with("i") || dtype.starts_with("u");
}

// How many times the error is above what is no fault; at most 1: none.
double excess(const OutputComparison& mutant, const OutputComparison& candidate, bool own_inputs) {
  const bool half = mutant.dtype == "f16" || mutant.dtype == "bf16";
  const double eps = epsilon_of(mutant.dtype);
  const auto over = [](double error, double limit) {
    if (std::isnan(error)) return kInfinite;
    return limit > 0 ? error / limit : error > 0 ? kInfinite : 0.0;
  };
  const double own = std::max({mutant.own_error, candidate.own_error, candidate.error});
  // How exactly an honest candidate adds shows on unusual inputs, too: there only what is grossly wrong
  // counts.
  const double wide = own_inputs ? 1 : kWider;
  if (is_whole(mutant.dtype)) return over(mutant.error, wide * kTimesElement * own);
  const double own_norm = std::max({mutant.own_norm_error, candidate.own_norm_error, candidate.norm_error});
  // Of the task's own inputs: numbers among much larger ones, as in an output that is masked with -1e9.
  const bool small_ones =
      own_inputs && mutant.max_absolute_error > kAbsolute && mutant.error > kTimesElement * own;
  const double relative = small_ones
                              ? over(mutant.max_relative_error,
                                     std::max(kGrossError, kGraveFactor * candidate.max_relative_error))
                              : 0;
  const double floor = half ? kFloorElementHalf : kFloorElement;
  // The norm of few elements has little to even out.
  const double count = static_cast<double>(std::max<int64_t>(mutant.elements, 1));
  const double norm_floor = std::max(half ? kFloorNormHalf : kFloorNorm, floor / std::sqrt(count));
  return std::max({relative, over(mutant.error, wide * (kTimesElement * own + floor * eps)),
                   over(mutant.norm_error, wide * (kTimesNorm * own_norm + norm_floor * eps))});
}

struct Worst {
  double excess = 0;
  std::string reason;
};
Worst worst_of(const std::vector<OutputComparison>& mutant, const std::vector<OutputComparison>& candidate,
               bool own_inputs) {
  Worst worst;
  for (size_t i = 0; i < mutant.size() && i < candidate.size(); ++i) {
    if (candidate[i].own_error > kNoDigit && !own_inputs && !is_whole(candidate[i].dtype)) continue;
    const double over = excess(mutant[i], candidate[i], own_inputs);
    if (!(over > worst.excess)) continue;
    worst.excess = over;
    worst.reason =
        fmt::format("{}: error {:.3g} (norm {:.3g}), the candidate's {:.3g} ({:.3g})", mutant[i].path,
                    mutant[i].error, mutant[i].norm_error, candidate[i].error, candidate[i].norm_error);
  }
  return worst;
}

}  // namespace

std::string_view to_string(KernelBench result) {
  return result == KernelBench::kKills ? "kills" : result == KernelBench::kPasses ? "passes" : "undecided";
}

std::vector<WitnessSearch::Inputs> WitnessSearch::all_inputs() {
  std::vector<Inputs> all;
  for (int i = 0; i < kOwnSeeds; ++i)
    all.push_back({.name = "own", .seed = kFirstSeed + static_cast<uint64_t>(i), .sanitize = i < 2});
  for (const char* name : kKinds)
    if (const auto kind = replay::input_distribution_from_string(name))
      all.push_back({.name = name, .kind = *kind, .seed = kFirstSeed + 100});
  for (int d = 0; d < distributions(); ++d)
    for (int i = 0; i < kSeedsEach; ++i)
      all.push_back({.name = std::string(distribution_name(d)),
                     .distribution = d,
                     .seed = kFirstSeed + 200 + static_cast<uint64_t>(i)});
  return all;
}

bool WitnessSearch::is_own(const Inputs& inputs) {
  return inputs.distribution < 0 && inputs.kind == InputDistribution::kOwn;
}

const trace::Trace* WitnessSearch::reference(int distribution) {
  if (distribution < 0) return subject_.reference.get();
  const std::lock_guard lock(mutex_);
  auto [place, fresh] = references_.try_emplace(distribution);
  if (fresh)
    if (auto changed = with_inputs(*subject_.reference, distribution))
      place->second = std::make_unique<const trace::Trace>(*std::move(changed));
  return place->second.get();
}

Result<std::unique_ptr<replay::Session>> WitnessSearch::open(int distribution,
                                                             const trace::Trace& candidate) {
  return server_.begin(*reference(distribution), candidate, {.phase_seconds = phase_seconds_, .threads = 1},
                       within_patience());
}

Deadline WitnessSearch::within_patience() const {
  return Deadline::earlier(deadline_, Deadline::after(kTrialSeconds));
}

Result<replay::TrialReport> WitnessSearch::trial(replay::Session& session, const Mutant* mutant,
                                                 const Inputs& inputs, bool well_measured) {
  replay::Tolerance tolerance;
  if (!is_own(inputs)) tolerance.slack = verify::kSlackOnOtherDistributions;
  if (!well_measured) tolerance.factor = kAnyError;
  const replay::Trial trial{
      .seed = inputs.seed, .distribution = inputs.kind, .perturb = true, .sanitize = inputs.sanitize};
  NEREID_TRY(auto report, session.trial(trial, tolerance, within_patience()));
  if (mutant == nullptr || mutant->step < 0 || !report.ran()) return report;
  return session.try_alternatives({.choices = {{mutant->step, mutant->alternative}}}, tolerance,
                                  within_patience());
}

Result<const WitnessSearch::Measured*> WitnessSearch::measured(const Inputs& inputs) {
  const std::string key = fmt::format("{} {}", inputs.name, inputs.seed);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = measured_.find(key); found != measured_.end()) return &found->second;
  }
  Measured result;
  NEREID_TRY(const auto session, open(inputs.distribution, *subject_.candidate));
  NEREID_TRY(const auto report, trial(*session, nullptr, inputs, true));
  // Where it is wrong itself (its own order of computing overflows) its mutants need not be right.
  if (report.ran() && report.comparison && report.comparison->defined && report.comparison->agrees)
    result = {true, report.comparison->outputs};
  for (const auto& output : result.outputs) result.usable &= std::isfinite(output.error);
  const std::lock_guard lock(mutex_);
  return &measured_.emplace(key, std::move(result)).first->second;
}

Result<std::optional<Witness>> WitnessSearch::look(replay::Session& session, const Mutant& mutant,
                                                   const Inputs& inputs) {
  const std::optional<Witness> none;
  NEREID_TRY(const Measured* candidate, measured(inputs));
  if (!candidate->usable) return none;
  NEREID_TRY(const auto report, trial(session, &mutant, inputs, false));
  const auto found = [&](std::string reason) {
    return std::optional<Witness>(Witness{inputs.name, inputs.seed, std::move(reason)});
  };
  if (!report.applicable || report.reference_failed) return none;
  if (report.failed) {
    if (report.failed->kind == replay::Failure::Kind::kUnsupported) return none;
    return found(fmt::format("{}: {}", replay::to_string(report.failed->kind), report.failed->message));
  }
  if (!report.findings.empty()) return found(report.findings.front().sentence);
  if (!report.inputs_written.empty()) return found("writes " + report.inputs_written.front());
  if (!report.comparison) return none;
  if (!report.comparison->structure.empty()) return found(report.comparison->structure);
  const bool own = is_own(inputs);
  const Worst worst = worst_of(report.comparison->outputs, candidate->outputs, own);
  if (!(worst.excess > 1)) return none;
  if (worst.excess > kGraveFactor && own) return found(worst.reason);
  // Once more, compared as a verdict would: what the tolerance allows on these inputs is no fault. It knows
  // what TF32 leaves, and that outputs which have come to a bound show no digits.
  NEREID_TRY(const auto again, trial(session, &mutant, inputs, true));
  if (!again.comparison || again.comparison->agrees) return none;
  const Worst surely = worst_of(again.comparison->outputs, candidate->outputs, own);
  if (surely.excess > 1) return found(surely.reason);
  return none;
}

Result<KernelBench> WitnessSearch::kernelbench(replay::Session& session) {
  bool half = false;
  for (const auto value : trace::tensors_in(judged_phase(*subject_.reference).output)) {
    const auto dtype = subject_.reference->values[static_cast<size_t>(value)].dtype;
    half |= dtype == trace::DType::kF16 || dtype == trace::DType::kBF16;
  }
  const double tolerance = half ? 1e-2 : 1e-4;
  for (int i = 0; i < kKernelBenchInputs; ++i) {
    const replay::Trial trial{
        .seed = kFirstSeed + 500 + static_cast<uint64_t>(i), .perturb = false, .sanitize = false};
    NEREID_TRY(const auto report,
               session.trial(trial, {.rtol = tolerance, .atol = tolerance}, within_patience()));
    if (report.reference_failed || !report.applicable) return KernelBench::kUndecided;
    if (!report.findings.empty()) return KernelBench::kUndecided;
    if (report.failed && report.failed->kind == replay::Failure::Kind::kCrashed)
      return KernelBench::kUndecided;
    if (report.failed || !report.comparison || !report.comparison->agrees) return KernelBench::kKills;
  }
  return KernelBench::kPasses;
}

Result<Searched> WitnessSearch::search(const Mutant& mutant, const trace::Trace& mutated) {
  Searched result;
  std::unique_ptr<replay::Session> session;
  int of = -2;
  for (const auto& inputs : all_inputs()) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (deadline_.passed()) return our_error("the time for the run is over");
    if (reference(inputs.distribution) == nullptr) continue;
    // What the candidate itself cannot do is no test, and costs no session.
    NEREID_TRY(const Measured* candidate, measured(inputs));
    if (!candidate->usable) continue;
    if (inputs.distribution != of) {
      session.reset();
      NEREID_TRY(session, open(inputs.distribution, mutated));
      of = inputs.distribution;
      if (result.trials == 0) {
        NEREID_TRY(result.kernelbench, kernelbench(*session));
      }
    }
    ++result.trials;
    NEREID_TRY(result.witness, look(*session, mutant, inputs));
    if (result.witness) break;
  }
  return result;
}

}  // namespace nereid::mutate
