#include "nereid/replay/worker/trial/error_limits.h"

#include <algorithm>
#include <cmath>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr double kNearly = 1024;  // times what is allowed
// Of roots whose squares underflow; of a softmax, an ulp of whose exponents (2^16 of them on other
// distributions) is an ulp of float32 times 2^16.
constexpr double kNearlyWide = 32 * kNearly;
constexpr int kTimesToRound = 4, kTimesToRoundCoarse = 8;
constexpr uint64_t kTimesToMix = 8;
constexpr double kNearlyCoarse = 16;
constexpr int64_t kFew = 64;  // elements of an output that may all lie where chance has put them

bool makes_large(InputDistribution kind) {
  using enum InputDistribution;
  return kind == kHuge || kind == kWide || kind == kNegative || kind == kOutliers || kind == kLarge ||
         kind == kShifted || kind == kFar || kind == kState;
}

// On distributions whose numbers are as many and as different as the task's own, roundings are alike. Not
// so of what an approximate instruction gives relative to one, nor of float32, where sums cancel.
double statistics_slack(const TrialForward& forward, InputDistribution kind) {
  using enum InputDistribution;
  constexpr double kSlack = 2;
  const bool like_own = makes_large(kind) || kind == kSmall;
  return like_own && forward.coarse && !forward.near_one ? kSlack : 0;
}

// Half of the elements have come to one number, which is no bound that the forward names.
bool is_saturated(const TrialForward& forward, const at::Tensor& truth) {
  constexpr double kNear = 1e-6;
  const auto number = saturated_at(truth);
  return number && std::ranges::none_of(forward.bounds, [&](double bound) {
           return std::abs(std::abs(*number) - std::abs(bound)) <= kNear * std::abs(bound);
         });
}

// How often inputs are moved: what that does to an output of many elements shows in two tries; to a single
// element, which one try may leave where it was by chance, it takes more.
int times_to_move(const std::vector<OutputTensors>& outputs) {
  const bool few = std::ranges::any_of(outputs, [](const OutputTensors& o) { return o.got.numel() <= kFew; });
  return few ? 10 : 2;
}

// Numbers of a grid that are moved by a scalar are rounded alike: what rounding to nearest makes of them,
// after every operator or at the end alone, is right whatever sums of errors that gives.
void round_to_nearest(TrialForward& forward, Float64Reference& recomputed,
                      std::vector<OutputTensors>& outputs) {
  using enum ErrorStatistics::Sample;
  forward.widen(outputs, recomputed, {.coarse = true, .in_parts = true}, kShift);
  forward.widen(outputs, recomputed, {.coarse = true}, kShift, true);
}

// Null where it cannot be in float64.
Float64Reference* in_tf32(TrialForward& forward, const Tolerance& tolerance) {
  return forward.references.upcast_to_float64(tf32_of(forward.trace(), tolerance.allow_tf32),
                                              tolerance.allow_tf32 ? "tf32 all" : "tf32");
}

}  // namespace

void set_expectations(const TrialForward& forward, const Trial& trial, const Tolerance& tolerance,
                      std::vector<OutputTensors>& outputs) {
  // The task's own with slack are a caller's own changes of them.
  const bool changed = trial.distribution == InputDistribution::kOwn && tolerance.slack > 1;
  if (makes_large(trial.distribution) || changed)
    for (auto& output : outputs) output.saturated = is_saturated(forward, output.truth);
  for (auto& output : outputs)
    output.statistics_slack = statistics_slack(forward, trial.distribution),
    output.other_inputs = tolerance.slack > 1;
}

void take_tf32(TrialForward& forward, const Tolerance& tolerance, const Comparison& comparison,
               std::vector<OutputTensors>& outputs) {
  const auto tf32 = tf32_of(forward.trace(), tolerance.allow_tf32);
  if (comparison.oracle != Oracle::kFloat64 || !uses_tf32(forward.trace(), tf32)) return;
  for (auto& output : outputs) output.coarse = output.tf32 = true;
  using Kind = Tf32Rounding::Kind;
  if (auto* recomputed = in_tf32(forward, tolerance)) {
    forward.widen(outputs, *recomputed, {.tf32 = {Kind::kNearest}}, ErrorStatistics::Sample::kNoise);
    forward.widen(outputs, *recomputed, {.tf32 = {Kind::kTruncated}}, ErrorStatistics::Sample::kShift);
  }
}

bool mix_tf32(TrialForward& forward, const Tolerance& tolerance, const Comparison& comparison,
              std::vector<OutputTensors>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& o = comparison.outputs[i];
    const bool nearly =
        o.error <= kNearlyCoarse * o.error_limit && o.norm_error <= kNearlyCoarse * o.norm_limit;
    if (!o.agrees && !(outputs[i].tf32 && nearly)) return false;
  }
  auto* recomputed = in_tf32(forward, tolerance);
  if (recomputed == nullptr) return false;
  for (uint64_t draw = 0; draw < kTimesToMix; ++draw)
    forward.widen(outputs, *recomputed, {.tf32 = {Tf32Rounding::Kind::kMixed, draw}},
                  ErrorStatistics::Sample::kShift);
  return true;
}

void move_inputs(TrialForward& forward, TrialInputs& inputs, const Trial& trial, Comparison& comparison,
                 std::vector<OutputTensors>& outputs) {
  comparison.conditioned = true;
  const auto whole = inputs.exact(trial);
  for (int i = 0; i < times_to_move(outputs); ++i)
    if (auto* recomputed = forward.truth_reference(comparison))
      forward.widen(outputs, *recomputed,
                    {.nudge = make_generator(trial.seed + 77 + i), .exact = whole, .coarse = forward.coarse});
}

bool nearly_agrees(TrialForward& forward, const Comparison& comparison,
                   const std::vector<OutputTensors>& outputs) {
  const auto* recomputed = forward.references.in_float64();
  const bool wide = recomputed != nullptr && (recomputed->has_softmax() || recomputed->has_roots());
  const double usual = wide ? kNearlyWide : kNearly;
  const double nearly = forward.coarse ? kNearlyCoarse : usual;
  if (comparison.agrees) return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& o = comparison.outputs[i];
    if (!o.agrees && !outputs[i].places &&
        !(o.error <= nearly * o.error_limit && o.norm_error <= nearly * o.norm_limit))
      return false;
  }
  return true;
}

void round_intermediates(TrialForward& forward, const Trial& trial, std::vector<OutputTensors>& outputs) {
  auto* recomputed = forward.references.in_float64();
  for (int i = 0; i < (forward.coarse ? kTimesToRoundCoarse : kTimesToRound); ++i)
    forward.widen(outputs, *recomputed,
                  {.coarse = forward.coarse, .rounding = make_generator(trial.seed + 777 + i)});
  if (!forward.coarse) return;
  if (recomputed->has_parts()) forward.widen(outputs, *recomputed, {.coarse = true, .in_parts = true});
  round_to_nearest(forward, *recomputed, outputs);
  using enum RoundedScalars;
  for (const auto kind : {kByCuda, kByCpu, kAlways})
    if (auto* with_rounded = forward.references.with_rounded_scalars(kind))
      round_to_nearest(forward, *with_rounded, outputs);
}

}  // namespace nereid::replay
