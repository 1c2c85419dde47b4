#include "nereid/replay/worker/trial/trial_judge.h"

#include <fmt/format.h>

#include "nereid/base/deadline.h"
#include "nereid/replay/memory_plan.h"
#include "nereid/replay/worker/trial/degenerate.h"
#include "nereid/replay/worker/trial/error_limits.h"
#include "nereid/replay/worker/trial/index_choices.h"
#include "nereid/replay/worker/trial/left_out.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr int kTimesToMove = 8;  // inputs, by half an ulp: a sum that stays where it was does so each time

void compare_all(Comparison& comparison, const Tolerance& tolerance, const std::vector<std::string>& paths,
                 const std::vector<OutputTensors>& outputs) {
  comparison.outputs.clear();
  comparison.agrees = true;
  int64_t elements = 0, undefined = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto output = compare(outputs[i], tolerance);
    output.path = paths.at(i);
    comparison.agrees &= output.agrees;
    elements += output.elements;
    undefined += output.undefined;
    comparison.outputs.push_back(std::move(output));
  }
  comparison.defined = elements == 0 || undefined < elements;
}

}  // namespace

TrialJudge::Judgement TrialJudge::judge(const Trial& trial, const Tolerance& tolerance,
                                        const std::vector<std::string>& paths,
                                        std::vector<OutputTensors> outputs) {
  auto& replay = forward_.own();
  judged_.reset();
  forward_.reorder = {};
  Comparison comparison;
  IndexOperands values, own_values;
  // In this order: while the float64 reference runs, with its inputs in float64, nothing else need be there.
  compute_truth(outputs, comparison, values);
  const Stopwatch own;
  const double processor_before = processor_seconds();
  forward_.run_own(own_values);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].own = taken(replay, forward_.outputs[i]);
  const double own_seconds = machine_.work(own.seconds(), processor_seconds() - processor_before);
  replay.rewind();
  if (comparison.oracle == Oracle::kOwn)
    for (auto& output : outputs) output.truth = output.own, output.upcast = false;

  find_places(forward_, comparison, outputs, values, own_values);
  leave_out_undefined(forward_, trial, comparison, outputs);
  leave_out_ill_conditioned(forward_, trial, comparison, outputs, 1);
  set_expectations(forward_, trial, tolerance, outputs);
  take_tf32(forward_, tolerance, comparison, outputs);
  if (comparison.oracle == Oracle::kOwn) move_inputs(forward_, inputs_, trial, comparison, outputs);
  compare_until_agreed(trial, tolerance, paths, outputs, values, own_values, comparison);
  if (trial.distribution == InputDistribution::kOwn) comparison.finite = finite_share(outputs);
  degenerate(comparison, outputs);
  keep_judged(outputs, comparison);
  return {.comparison = std::move(comparison), .own_seconds = own_seconds};
}

// Compares, and after each reason for which outputs may differ compares again.
void TrialJudge::compare_until_agreed(const Trial& trial, const Tolerance& tolerance,
                                      const std::vector<std::string>& paths,
                                      std::vector<OutputTensors>& outputs, const IndexOperands& values,
                                      const IndexOperands& own_values, Comparison& comparison) {
  const auto compare_again = [&] { compare_all(comparison, tolerance, paths, outputs); };
  compare_again();
  // What is equal in conventions, too, needs no float64 replay that finds them.
  if (!comparison.agrees && leave_out_conventions(forward_, trial, comparison, outputs))
    compare_again();
  else if (comparison.agrees && holds_no_numbers(trial))
    comparison.defined = finite_share(outputs) > 0;
  if (!comparison.agrees && leave_out_times_zero(forward_, trial, comparison, outputs)) compare_again();
  if (!comparison.agrees && follow_order(forward_, comparison, outputs, values)) compare_again();
  if (!tolerance.kernelbench) {
    if (!comparison.agrees && leave_out_ill_conditioned(forward_, trial, comparison, outputs, kTimesToMove))
      compare_again();
    if (!comparison.agrees && leave_out_undecided(forward_, comparison, outputs)) compare_again();
    if (!comparison.agrees && leave_out_nearly_infinite(forward_, trial, comparison, outputs))
      compare_again();
    if (!comparison.agrees && leave_out_poles_of_noise(forward_, trial, comparison, outputs)) compare_again();
    if (!comparison.agrees && leave_out_near_overflow(forward_, trial, comparison, outputs)) compare_again();
    if (!comparison.agrees && leave_out_overflown(forward_, trial, comparison, outputs)) compare_again();
    if (!comparison.agrees && leave_out_near_ties(forward_, trial, comparison, outputs)) compare_again();
  }
  if (tolerance.fixed()) return;
  if (!comparison.agrees && choose_among_equals(forward_, trial, comparison, outputs, values, own_values))
    compare_again();
  if (!comparison.agrees && mix_tf32(forward_, tolerance, comparison, outputs)) compare_again();
  // An output that its inputs' own rounding moves that far cannot be asked for more.
  if (!comparison.agrees && !comparison.conditioned) {
    move_inputs(forward_, inputs_, trial, comparison, outputs);
    compare_again();
    if (comparison.oracle == Oracle::kFloat64 && nearly_agrees(forward_, comparison, outputs)) {
      round_intermediates(forward_, trial, outputs);
      compare_again();
    }
  }
  if (!comparison.agrees && leave_out_noise_sensitive(forward_, trial, comparison, outputs)) compare_again();
}

std::optional<Comparison> TrialJudge::judged_again(const Tolerance& tolerance,
                                                   const std::vector<std::string>& paths,
                                                   const std::vector<OutputTensors>& outputs) const {
  if (!judged_) return std::nullopt;
  bool same = true;
  for (size_t i = 0; i < outputs.size() && same; ++i)
    same = same_bits(outputs[i].got, judged_->outputs[i].got);
  if (same) return judged_->comparison;
  auto known = judged_->outputs;
  for (size_t i = 0; i < outputs.size(); ++i) known[i].got = outputs[i].got;
  Comparison comparison = judged_->comparison;
  compare_all(comparison, tolerance, paths, known);
  if (comparison.agrees) return comparison;
  return std::nullopt;
}

void TrialJudge::keep_judged(std::vector<OutputTensors>& outputs, const Comparison& comparison) {
  int64_t bytes = 0;
  for (const auto& output : outputs) bytes += static_cast<int64_t>(output.truth.nbytes());
  judged_.reset();
  // What was left out for this answer's sake is judged in others.
  if (!forward_.frugal && bytes <= kMaxRemembered / 16 && comparison.overflown == 0)
    judged_ = Judged{std::move(outputs), comparison};
}

void TrialJudge::compute_truth(std::vector<OutputTensors>& outputs, Comparison& comparison,
                               IndexOperands& values) {
  auto* recomputed = forward_.references.in_float64();
  try {
    if (recomputed) {
      auto truth = forward_.recompute(*recomputed, {.exchange = forward_.keep_operands(values)});
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].truth = std::move(truth[i]);
      return;
    }
  } catch (const Failed& failed) {  // no float64 kernel for some operator
    forward_.references.give_up_float64(
        fmt::format("in float64: {}{}", failed.where ? describe(*failed.where) + ": " : "", failed.what()));
  }
  comparison.oracle = Oracle::kOwn;
  comparison.oracle_note = forward_.references.unavailable_reason();
}

// Whether the task says anything: outputs that are one number, or the same whatever goes in.
void TrialJudge::degenerate(Comparison& comparison, const std::vector<OutputTensors>& outputs) {
  comparison.constant = !outputs.empty();
  comparison.insensitive = !outputs.empty() && !earlier_.empty();
  int64_t bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bytes += static_cast<int64_t>(outputs[i].truth.nbytes());
    if (outputs[i].own.numel() == 0) continue;
    auto& recomputed = comparison.outputs[i];
    const auto& truth = outputs[i].truth;
    const auto flat = truth.reshape({-1});
    // What the comparison has measured is not measured again.
    const auto& known = outputs[i].reference_errors;
    const double scale = known ? known->unit : rms(truth);
    comparison.constant &= is_constant(outputs[i].own);
    recomputed.constant = flat.numel() > 1 &&
                          is_close(flat, flat.narrow(0, 0, 1).expand_as(flat), scale, recomputed.error_limit);
    if (!earlier_.empty())
      recomputed.insensitive = is_close(truth, earlier_[i], scale, recomputed.error_limit);
    comparison.insensitive &= recomputed.insensitive;
  }
  if (!earlier_.empty() || bytes > kMaxRemembered) return;
  for (const auto& output : outputs) {
    earlier_.push_back(output.truth.clone());
    const auto* known = known_errors(output);
    const bool integral = trace::is_integral(dtype_of(output.truth.scalar_type()));
    usual_scales_.push_back(integral                      ? 0
                            : known && known->whole_truth ? rms(*known->whole_truth)
                                                          : rms(output.truth));
  }
}

}  // namespace nereid::replay
