// How often a task is tried, and how far its state is changed.
#include <algorithm>

#include "nereid/replay/deciding_state.h"
#include "nereid/verify/stages/trials.h"

namespace nereid::verify {

using replay::InputDistribution;

namespace {

constexpr int64_t kFewElements = 64;
constexpr int kMoreDraws = 9;                 // of the task's own inputs, where they show little
constexpr int kMaxRedraws = 150;              // in place of draws whose outputs are those of another one
constexpr int kMaxUselessRedraws = 40;        // ... where all of them were
constexpr int kMoreDrawsOfPlaces = 30;        // ... where outputs are integers: some are right by chance
constexpr int64_t kCheap = 4 << 20;           // bytes of a task
constexpr int kSomeSides = 8, kFewSides = 2;  // of deciding state, where trials take long

}  // namespace

int sides_to_try(const trace::Trace& reference, bool cheap, bool brief) {
  const int all = replay::deciding_state(reference).trials;
  return std::min(all, brief ? kFewSides : cheap ? all : kSomeSides);
}

bool Trials::has_small_outputs() const {
  const auto& judged = candidate_.trace->phases.at(static_cast<size_t>(candidate_.judged()));
  int64_t elements = 0;
  for (const auto value : trace::tensors_in(judged.output))
    elements += trace::element_count(candidate_.trace->values[static_cast<size_t>(value)]);
  return elements <= kFewElements;
}

bool Trials::draws_many() const {
  return settings_.trials > 1 && !brief_ && !settings_.fast_inputs && is_cheap() &&
         settings_.protocol == Protocol::kNereid;
}

int Trials::own_draws(int draw) const {
  if (draw > 0 || brief_) return 1;
  const int count = std::max(1, settings_.trials);
  if (!draws_many() || !has_small_outputs()) return count;
  return count + (has_integer_output() ? kMoreDrawsOfPlaces : kMoreDraws);
}

bool Trials::draws_again(const replay::TrialReport& report) {
  if (!report.comparison || !report.comparison->insensitive) return varies_ = true, false;
  return draws_many() && redraws_++ < (varies_ ? kMaxRedraws : kMaxUselessRedraws);
}

bool Trials::mixes_elements() const {
  const auto& steps = reference_.phases.at(static_cast<size_t>(reference_.judged())).steps;
  return std::ranges::any_of(steps, [](const StepAnalysis& step) { return step.work == Work::kHeavy; });
}

bool Trials::is_cheap() const { return session_.facts().peak_bytes <= kCheap; }

bool Trials::has_integer_output() const {
  const auto& judged = candidate_.trace->phases.at(static_cast<size_t>(candidate_.judged()));
  return std::ranges::any_of(trace::tensors_in(judged.output), [&](trace::ValueId value) {
    return trace::is_integral(candidate_.trace->values[static_cast<size_t>(value)].dtype);
  });
}

// Other input distributions are for what goes wrong altogether; how exactly a sum is taken is judged on the
// task's own.
replay::Tolerance tolerance_on(InputDistribution kind, replay::Tolerance tolerance) {
  if (kind != InputDistribution::kOwn) tolerance.slack *= kSlackOnOtherDistributions;
  return tolerance;
}

// State is perturbed as far as the reference bears it: where all of it changed makes it fail, or leaves fewer
// numbers than constants alone do, constants alone are.
Status Trials::choose_perturbation(replay::TrialReport& report) {
  const auto bears = [](const replay::TrialReport& r) {
    if (r.reference_failed) return -1.0;
    if (!r.comparison || !r.comparison->structure.empty()) return 1.0;
    double own_error = 0;
    for (const auto& output : r.comparison->outputs) own_error = std::max(own_error, output.own_error);
    return own_error > kNoDigit ? 0.5 * r.comparison->finite : r.comparison->finite;
  };
  const double all = bears(report);
  if (gentle_ || all >= 1 || !session_.facts().state) return ok_status();
  gentle_ = true;
  NEREID_TRY(auto gently, one(InputDistribution::kOwn, 0, !blind_));
  if (bears(gently) > all) {
    report = std::move(gently);
    return ok_status();
  }
  gentle_ = false;
  NEREID_TRY(report, one(InputDistribution::kOwn, 0, !blind_));  // the trial that what follows goes on from
  return ok_status();
}

}  // namespace nereid::verify
