#include "nereid/replay/worker/trial/left_out.h"

#include <functional>
#include <limits>
#include <string_view>

#include "nereid/replay/structure.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/trial/forward_traits.h"
#include "nereid/replay/worker/trial/undecided_elements.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {

bool holds_no_numbers(const Trial& trial) {
  return trial.distribution == InputDistribution::kInfinities ||
         trial.distribution == InputDistribution::kNans;
}

namespace {

// Integers alone are not the task's own: what is infinite because the forward names an infinity, and chooses
// it (the maximum of a row that is masked throughout), is as well defined as a number.
bool keep_named_infinities(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                           std::vector<OutputTensors>& outputs) {
  constexpr double kStandIn = 1e30;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (trial.distribution < InputDistribution::kLowest || comparison.oracle != Oracle::kFloat64) return false;
  const auto made = made_with_infinity(forward.trace());
  const auto is_infinite = [](const OutputTensors& o) {
    return c10::isFloatingType(o.truth.scalar_type()) && o.truth.isinf().any().item().toBool();
  };
  if (made.empty() || std::ranges::none_of(outputs, is_infinite)) return false;
  const auto replaced =
      forward.recompute(*forward.references.in_float64(),
                        {.watch =
                             [&](trace::StorageId storage, const at::Tensor& result) {
                               if (made.contains(storage) && c10::isFloatingType(result.scalar_type()))
                                 result.nan_to_num_(kNan, kStandIn, -kStandIn);
                             },
                         .nan = kNan,
                         .infinity = kStandIn});
  const bool any_nan = has_exponentials(forward.trace());
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto& output = outputs[i];
    const auto& truth = output.truth;
    if (!c10::isFloatingType(truth.scalar_type()) || truth.numel() == 0) continue;
    const auto chosen = replaced[i].isfinite().logical_and_(replaced[i].sign().eq(truth.sign()));
    auto judged = truth.isinf().logical_and_(chosen);
    if (any_nan) judged.logical_and_(output.got.to(truth.device()).isnan().logical_not_());
    judged.logical_or_(truth.isfinite());
    mark_undefined(output,
                   at::where(judged, truth,
                             at::where(truth.isnan(), at::zeros_like(truth), at::full_like(truth, kNan))));
  }
  return true;
}

}  // namespace

void leave_out_undefined(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs) {
  if (keep_named_infinities(forward, trial, comparison, outputs)) return;
  // A forward that says what it makes of infinities and NaNs is held to that.
  if (forward.widened || (holds_no_numbers(trial) && handles_nans(forward.trace())))
    for (auto& output : outputs)
      // Where the floating-point inputs are the task's own, so are infinities among which places are taken.
      if (!output.places || trial.distribution < InputDistribution::kLowest)
        keep_agreeing(output.agreed, output.truth, output.truth);
}

namespace {

// What is beyond an integer type's range is cast to one number on a CPU: the last of them is within it.
struct StandIn {
  double nan, infinity;
};
constexpr StandIn kStandIns[] = {{1e9, 1e9}, {-1e12, 1e12}, {3e4, 3e4}};

// Casts of infinities and NaNs to integers give another number: what a CPU makes of them is not defined, and
// hides what they reach.
std::optional<Replay::Exchange> other_casts(const TrialForward& forward) {
  constexpr double kOther = 55;
  const auto& trace = forward.trace();
  const auto type = [&](trace::ValueId id) { return trace.values[static_cast<size_t>(id)].dtype; };
  const auto& steps = judged_forward(trace)->steps;
  std::set<int> casts;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* call = std::get_if<trace::Call>(&steps[i]);
    if (call == nullptr) continue;
    const auto name = trace::split_name(call->op).name;
    if (name != "_to_copy" && name != "to" && name != "copy" && name != "copy_") continue;
    for (const auto made : trace::tensors_in(call->result))
      if (trace::is_integral(type(made)) && type(made) != trace::DType::kBool)
        casts.insert(static_cast<int>(i));
  }
  if (casts.empty()) return std::nullopt;
  return [casts](int step, trace::ValueId, const at::Tensor& operand) {
    if (!casts.contains(step) || !c10::isFloatingType(operand.scalar_type())) return operand;
    return operand.masked_fill(operand.isfinite().logical_not(), kOther);
  };
}

}  // namespace

bool leave_out_conventions(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                           std::vector<OutputTensors>& outputs) {
  if (!holds_no_numbers(trial) || handles_nans(forward.trace())) return false;
  std::vector<Change> changes;
  for (const auto& other : kStandIns) changes.push_back({.nan = other.nan, .infinity = other.infinity});
  if (const auto casts = other_casts(forward)) changes.push_back({.exchange = *casts});
  // What attention makes of a query that is no number may be hidden by a bound.
  if (has_attention(forward.trace()))
    for (const double large : {1e9, -1e9}) changes.push_back({.odd_attention = large});
  for (const auto& change : changes) {
    auto* recomputed = forward.truth_reference(comparison);
    if (!recomputed) return false;
    const auto others = forward.recompute(*recomputed, change);
    for (size_t i = 0; i < outputs.size(); ++i) keep_agreeing(outputs[i].agreed, outputs[i].truth, others[i]);
  }
  return true;
}

bool leave_out_times_zero(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                          std::vector<OutputTensors>& outputs) {
  if (!holds_no_numbers(trial) || handles_nans(forward.trace()) || !is_odd(comparison)) return false;
  auto* recomputed = forward.truth_reference(comparison);
  if (!recomputed) return false;
  const auto& program = forward.own().program();
  const auto& steps = program.phases()[program.judged()].phase->steps;
  const auto multiplies = [&](int step) {
    const auto* call =
        static_cast<size_t>(step) < steps.size() ? std::get_if<trace::Call>(&steps[step]) : nullptr;
    const auto name = call ? trace::split_name(call->op).name : std::string_view();
    return name == "mul" || name == "mul_" || name == "multiply";
  };
  const Replay::Exchange ones = [&](int step, trace::ValueId, const at::Tensor& operand) {
    return multiplies(step) ? operand.masked_fill(operand.eq(0), 1) : operand;
  };
  const auto shown = forward.recompute(*recomputed, {.exchange = ones});
  std::vector<at::Tensor> same(outputs.size());
  for (const auto& other : kStandIns) {
    const auto made =
        forward.recompute(*recomputed, {.exchange = ones, .nan = other.nan, .infinity = other.infinity});
    for (size_t i = 0; i < outputs.size(); ++i) keep_agreeing(same[i], shown[i], made[i]);
  }
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto& agreed = outputs[i].agreed;
    if (!agreed.defined()) continue;
    const auto hidden = same[i].view({-1}).logical_not().logical_and_(outputs[i].truth.reshape({-1}).eq(0));
    if (!hidden.any().item().toBool()) continue;
    agreed = agreed.view({-1}).logical_and(hidden.logical_not());
    any = true;
  }
  return any;
}

bool leave_out_ill_conditioned(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs, int times) {
  if (trial.distribution != InputDistribution::kClose || comparison.oracle != Oracle::kFloat64) return false;
  bool any = false;
  for (int time = 0; time < times; ++time) {
    const auto moved =
        forward.recompute(*forward.references.in_float64(),
                          {.nudge = make_generator(trial.seed + 7 + 1000003 * static_cast<uint64_t>(time))});
    for (size_t i = 0; i < outputs.size(); ++i) any |= forget_ill_conditioned(outputs[i], moved[i]);
  }
  return any;
}

bool leave_out_poles_of_noise(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                              std::vector<OutputTensors>& outputs) {
  constexpr int kTimes = 6;
  if (trial.distribution == InputDistribution::kOwn || !is_odd(comparison)) return false;
  auto* recomputed = comparison.oracle == Oracle::kFloat64 ? forward.references.in_float64() : nullptr;
  if (!recomputed) return false;
  bool any = false;
  for (int time = 0; time < kTimes; ++time) {
    const auto rounded = forward.recompute(
        *recomputed, {.coarse = forward.coarse,
                      .rounding = make_generator(trial.seed + 77177 + static_cast<uint64_t>(time))});
    for (size_t i = 0; i < outputs.size(); ++i) any |= forget_poles(outputs[i], rounded[i]);
    // Where all rows are the same, so is their noise: other numbers have other noise.
    const auto other = forward.recompute(*forward.references.in_own_dtypes(),
                                         {.scale = 1 + 0x1p-12 * (static_cast<double>(time) + 1)});
    for (size_t i = 0; i < outputs.size(); ++i) any |= forget_poles(outputs[i], other[i]);
  }
  return any;
}

bool leave_out_undecided(TrialForward& forward, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs) {
  if (!is_odd(comparison) || comparison.oracle != Oracle::kFloat64) return false;
  auto* recomputed = forward.references.order_checked();
  if (!recomputed) recomputed = forward.references.in_float64();
  auto marked = forward.recompute(*recomputed, {.mark_overflow = true});
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    any |= mark_undefined(outputs[i], marked[i]);
    marked[i].reset();
  }
  return any;
}

bool leave_out_nearly_infinite(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs) {
  constexpr double kLarger = 1.25;
  if (trial.distribution == InputDistribution::kOwn || !is_odd(comparison)) return false;
  auto* recomputed = comparison.oracle == Oracle::kFloat64 ? forward.references.in_float64() : nullptr;
  if (!recomputed) return false;
  auto scaled = forward.recompute(*recomputed, {.scale = kLarger});
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    any |= forget_nearly_infinite(outputs[i], scaled[i]);
    scaled[i].reset();
  }
  return any;
}

bool leave_out_near_overflow(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                             std::vector<OutputTensors>& outputs) {
  constexpr double kLarger = 16;
  if (trial.distribution != InputDistribution::kFar || comparison.oracle != Oracle::kFloat64) return false;
  const auto own = forward.recompute(*forward.references.in_own_dtypes(), {.scale = kLarger});
  const auto truth = forward.recompute(*forward.references.in_float64(), {.scale = kLarger});
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) any |= forget_near_overflow(outputs[i], own[i], truth[i]);
  return any;
}

bool leave_out_overflown(const TrialForward& forward, const Trial& trial, Comparison& comparison,
                         std::vector<OutputTensors>& outputs) {
  using enum InputDistribution;
  const auto kind = trial.distribution;
  if (kind == kOwn || kind == kInfinities || kind == kNans || !is_odd(comparison)) return false;
  for (auto& output : outputs)
    comparison.overflown += forget_overflown(output, has_attention(forward.trace()));
  return comparison.overflown > 0;
}

namespace {

// The most that each element of the outputs moves, from the truth, in so many changed replays.
std::vector<at::Tensor> max_moved(TrialForward& forward, Float64Reference& recomputed,
                                  const std::vector<OutputTensors>& outputs, int times,
                                  const std::function<Change(int)>& change) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<at::Tensor> moved(outputs.size());
  for (int time = 0; time < times; ++time) {
    const auto others = forward.recompute(recomputed, change(time));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& truth = outputs[i].truth;
      if (truth.scalar_type() != c10::kDouble || truth.numel() == 0) continue;
      const auto by = others[i].sub(truth).abs_().nan_to_num_(kInfinite);
      moved[i] = moved[i].defined() ? moved[i].maximum(by) : by;
    }
  }
  return moved;
}

}  // namespace

bool leave_out_near_ties(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs) {
  // Sums of up to some hundred terms err by less than a quarter of what such inputs move them by: a tie that
  // a candidate's rounding decides is decided otherwise in one of 12 samples, but for 1 of 400.
  constexpr int kTimes = 12;
  constexpr double kHalfUlps = 64;
  constexpr double kMinMoved = 0x1p-16;  // values of one size may differ by little
  if (trial.distribution != InputDistribution::kFar || comparison.oracle != Oracle::kFloat64) return false;
  auto* recomputed = forward.references.in_float64();
  if (!recomputed->has_softmax()) return false;
  const auto moved = max_moved(forward, *recomputed, outputs, kTimes, [&](int time) {
    return Change{.nudge = make_generator(trial.seed + 7700 + static_cast<uint64_t>(time)),
                  .nudge_times = kHalfUlps};
  });
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (moved[i].defined()) any |= forget_noise_sensitive(outputs[i], moved[i], kMinMoved, false);
  return any;
}

bool leave_out_noise_sensitive(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs) {
  constexpr int kTimes = 3;
  const bool grid = trial.distribution == InputDistribution::kGrid;
  auto* recomputed =
      comparison.oracle == Oracle::kFloat64 && !forward.coarse ? forward.references.in_float64() : nullptr;
  const bool approximate = recomputed && recomputed->has_approximate_results();
  if (!recomputed || !(grid || approximate || recomputed->has_shared_results())) return false;
  // What the task's own inputs show is not left out as a whole.
  const bool any_share = grid || (approximate && trial.distribution != InputDistribution::kOwn);
  // 32 ulps of float32; of what functions make by chance, 4.
  const double min_moved = any_share && !grid ? 0x1p-21 : 0x1p-18;
  const auto moved = max_moved(forward, *recomputed, outputs, (grid ? 2 : 1) * kTimes, [&](int time) {
    const auto generator = make_generator(trial.seed + 77777 + static_cast<uint64_t>(time));
    Change change;
    if (time < kTimes) change.apart = generator;
    if (time >= kTimes) change.rounding = generator, change.coarse = true;
    return change;
  });
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (moved[i].defined()) any |= forget_noise_sensitive(outputs[i], moved[i], min_moved, any_share);
  return any;
}

}  // namespace nereid::replay
