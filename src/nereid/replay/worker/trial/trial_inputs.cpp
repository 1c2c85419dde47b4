#include "nereid/replay/worker/trial/trial_inputs.h"

#include <ATen/Context.h>

#include <algorithm>

#include "nereid/replay/state_pairing.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/trial/forward_traits.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

void add_numbers(const trace::Arg& arg, std::vector<int64_t>& numbers) {
  if (const auto* number = std::get_if<int64_t>(&arg.node)) numbers.push_back(*number);
  if (const auto* list = std::get_if<trace::List>(&arg.node))
    for (const auto& item : list->items) add_numbers(item, numbers);
  if (const auto* dict = std::get_if<trace::Dict>(&arg.node))
    for (const auto& item : dict->items) add_numbers(item.second, numbers);
}

}  // namespace

void TrialInputs::load(bool coarse, bool chooses) {
  by_chance_ = made_by_chance(loaded_.trace);
  searched_ = searched_in_order(loaded_.trace);
  compared_ = compared_numbers(loaded_.trace);
  deciding_ = deciding_state(loaded_.trace);
  // Of what is computed from a choice among many equals, not every choice can be tried. Of results of 16 bits
  // many are equal by rounding.
  may_be_on_grids_ = !chooses && !coarse;
  may_be_far_ = !has_mask_constant(loaded_.trace) && !makes_integers_of_floats(loaded_.trace);
  beyond_squares_ = works_on_elements(loaded_.trace);
  may_be_close_ = !coarse && decides_by_inputs(loaded_.trace);
}

std::vector<ValueId> TrialInputs::of_call(int call) const {
  for (const auto& phase : loaded_.trace.phases)
    if (phase.kind == trace::PhaseKind::kMakeInputs && phase.call == call)
      return trace::tensors_in(phase.inputs);
  return {};
}

std::set<StorageId> TrialInputs::floating() const {
  std::set<StorageId> found;
  for (const auto id : of_call(loaded_.program->judged_call())) {
    const auto& value = loaded_.trace.values[id];
    if (trace::is_floating(value.dtype) && trace::element_count(value) > 1) found.insert(value.storage);
  }
  return found;
}

// Floating-point tensors that hold whole numbers alone.
bool TrialInputs::holds_whole_numbers(ValueId value) {
  constexpr int64_t kFirst = 64;
  const auto& shape = loaded_.trace.values[value];
  if (!trace::is_floating(shape.dtype) || !loaded_.replay->bound(shape.storage)) return false;
  auto tensor = loaded_.replay->value(value);
  if (tensor.is_complex() || c10::elementSize(tensor.scalar_type()) < 2 || tensor.numel() == 0) return false;
  tensor = tensor.reshape({-1});
  const auto whole = [](const at::Tensor& part) { return part.eq(part.round()).all().item().toBool(); };
  return whole(tensor.narrow(0, 0, std::min(kFirst, tensor.numel()))) && whole(tensor);
}

void TrialInputs::note_labels() {
  labels_.clear();
  for (const auto value : of_call(loaded_.program->judged_call()))
    if (holds_whole_numbers(value)) labels_.push_back(value);
}

std::set<StorageId> TrialInputs::exact(const Trial& trial) {
  std::set<StorageId> storages;
  if (trial.distribution == InputDistribution::kGrid || trial.distribution == InputDistribution::kClose)
    for (const auto value : of_call(loaded_.program->judged_call()))
      storages.insert(loaded_.trace.values[value].storage);
  for (const auto value : labels_)
    if (holds_whole_numbers(value)) storages.insert(loaded_.trace.values[value].storage);
  for (const auto& state : loaded_.trace.state)
    if (holds_whole_numbers(state.value)) storages.insert(loaded_.trace.values[state.value].storage);
  return storages;
}

bool TrialInputs::repeat() {
  constexpr int64_t kSample = 1024, kFewNumbers = 32;
  bool any = false;
  const auto& phase = *loaded_.program->phases()[loaded_.program->judged()].phase;
  for (const auto value : trace::tensors_in(phase.inputs)) {
    const auto& shape = loaded_.trace.values[value];
    if (!trace::is_floating(shape.dtype) || !loaded_.replay->bound(shape.storage)) continue;
    auto input = loaded_.replay->value(value);
    if (input.is_complex()) input = at::view_as_real(input);
    if (input.numel() < 2 * kFewNumbers) continue;
    const auto flat = input.reshape({-1});
    const auto step = std::max<int64_t>(1, flat.numel() / kSample) | 1;
    const auto sorted = std::get<0>(flat.slice(0, 0, std::nullopt, step).to(c10::kDouble).sort(0));
    const auto numbers = 1 + sorted.slice(0, 1).ne(sorted.slice(0, 0, -1)).sum().item().toLong();
    const auto head = flat.narrow(0, 0, std::min(kSample, flat.numel())).to(c10::kDouble);
    const auto steps = head.slice(0, 1).sub(head.slice(0, 0, -1));
    const bool smooth = steps.ge(0).all().item().toBool() || steps.le(0).all().item().toBool();
    if (numbers > kFewNumbers && !smooth) return false;
    any = true;
  }
  return any;
}

void TrialInputs::perturb_state(StorageId storage, const Trial& trial, const std::vector<ValueId>& paired,
                                at::Generator& generator) {
  for (size_t i = 0; i < loaded_.trace.state.size(); ++i) {
    const auto& state = loaded_.trace.state[i];
    if (loaded_.trace.values[state.value].storage != storage || !loaded_.replay->bound(storage)) continue;
    const bool alone = std::ranges::find(paired, state.value) == paired.end();
    auto tensor = loaded_.replay->value(state.value);
    const bool running = state.name.ends_with("running_mean") || state.name.ends_with("running_var");
    // A candidate under whose names such weights are not found draws them again: the seed is the same.
    if (trial.gentle || (alone && by_chance_[i])) {
      if (state.parameter || running) perturb_constant(tensor, generator);
    } else if ((state.parameter || state.persistent) && !is_structure(state.value, tensor)) {
      if (trial.deciding > 0 && c10::isIntegralType(tensor.scalar_type(), true)) {
        decide(state, tensor, trial, generator);
      } else if (c10::isIntegralType(tensor.scalar_type(), true)) {
        if (trial.distribution == InputDistribution::kRedrawn && !counts_batches(state))
          redraw_integers(tensor, trial.distribution, use_in_forward(state.value), {}, generator);
      } else {
        perturb(tensor, generator);
        if (trial.deciding > 0) {
          decide(state, tensor, trial, generator);
        } else if (trial.distribution == InputDistribution::kState) {
          const double most = trial.narrowed > 0 ? largest_size(tensor) : 0;
          widen_state(tensor, state.parameter, generator, (trial.seed & 1) != 0);
          narrow(tensor, most, trial.narrowed);
        }
        put_in_order(state.value);
      }
    }
  }
}

// Of several tensors every other one in turn: next to extremes of all the others few show.
void TrialInputs::decide(const trace::State& state, const at::Tensor& tensor, const Trial& trial,
                         at::Generator& generator) {
  const auto found = std::ranges::find(deciding_.values, state.value);
  const auto place = found - deciding_.values.begin();
  const bool alone = deciding_.values.size() == 1;
  const int64_t turn = trial.deciding - 1;
  if (found == deciding_.values.end() || (!alone && (place + turn) % 2 != 0)) return;
  const double most = trial.narrowed > 0 ? largest_size(tensor) : 0;  // of integers: 0
  take_sides(tensor, deciding_, (alone ? turn : turn / 2) * tensor.numel(), state.parameter,
             deciding_.near_bounds[static_cast<size_t>(place)], generator);
  narrow(tensor, most, trial.narrowed);
}

// A mask by distance that is only compared, or added where it holds an infinity or a number that stands for
// one: its shape says what it holds (causal attention), and a kernel need not read it.
bool TrialInputs::is_structure(ValueId value, const at::Tensor& tensor) {
  const auto found = structures_.find(value);
  if (found != structures_.end()) return found->second;
  constexpr double kMaskConstant = -1e4;
  const bool compared = tensor.scalar_type() == c10::kBool || use_in_forward(value).compared_alone;
  const bool structure = tensor.numel() > 1 && is_banded(tensor) &&
                         (compared || tensor.min().item().toDouble() <= kMaskConstant);
  return structures_[value] = structure;
}

const IntegerUse& TrialInputs::use_in_forward(ValueId value) {
  const auto found = uses_.find(value);
  return found != uses_.end() ? found->second
                              : uses_.emplace(value, use_of(loaded_.trace, value)).first->second;
}

bool TrialInputs::change(int call, const Trial& trial, at::Generator& generator, bool& widened) {
  const auto kind = trial.distribution;
  if (kind >= InputDistribution::kLowest) return change_integers(call, kind, generator);
  if (kind == InputDistribution::kGrid && !may_be_on_grids_) return false;
  const bool far = kind == InputDistribution::kFar;
  bool any = (far || kind == InputDistribution::kFlipped) && change_integers(call, kind, generator);
  widened |= any;
  if (far && (!may_be_far_ || inputs_have_mask_constant(call))) return any;
  DistributionContext context{.whole = (trial.seed & 1) != 0,
                              .beyond_squares = beyond_squares_,
                              .bounded = bounded,
                              .bounds = compared_};
  for (const auto value : of_call(call)) {
    if (!loaded_.replay->bound(loaded_.trace.values[value].storage)) continue;
    const auto tensor = loaded_.replay->value(value);
    const double most = trial.narrowed > 0 ? largest_size(tensor) : 0;
    const bool applied = apply_distribution(tensor, kind, generator, &widened, context);
    if (applied && bounded && kind == InputDistribution::kWide && tensor.numel() > 1) tensor.mul_(*bounded);
    narrow(tensor, most, trial.narrowed);
    any |= applied, context.first &= !applied;
    put_in_order(value);
  }
  return any;
}

// Masks that are added, in an input or in the state: see has_mask_constant().
bool TrialInputs::inputs_have_mask_constant(int call) {
  constexpr double kFar = -1000;
  const auto holds = [&](ValueId id) {
    const auto& shape = loaded_.trace.values[id];
    if (!trace::is_floating(shape.dtype) || !loaded_.replay->bound(shape.storage)) return false;
    const auto tensor = loaded_.replay->value(id);
    return !tensor.is_complex() && c10::elementSize(tensor.scalar_type()) > 1 && tensor.numel() > 0 &&
           tensor.min().item().toDouble() <= kFar;
  };
  const auto inputs = of_call(call);
  return std::ranges::any_of(inputs, holds) ||
         std::ranges::any_of(loaded_.trace.state, [&](const trace::State& s) { return holds(s.value); });
}

void TrialInputs::put_in_order(ValueId value) {
  const auto& shape = loaded_.trace.values[value];
  if (!searched_.contains(shape.storage) || !trace::is_floating(shape.dtype) || shape.sizes.empty()) return;
  const auto tensor = loaded_.replay->value(value);
  tensor.copy_(std::get<0>(tensor.sort(-1)));
}

bool TrialInputs::has_integer_tables() const {
  return std::ranges::any_of(loaded_.trace.state, [&](const trace::State& state) {
    const auto& value = loaded_.trace.values[state.value];
    return state.persistent && trace::is_integral(value.dtype) && !counts_batches(state);
  });
}

// What the host read stays what this draw has: other draws are other traces.
bool TrialInputs::change_integers(int call, InputDistribution kind, at::Generator& generator) {
  std::vector<IntegerInput> integers;
  IntegerLimits limits;
  const auto take_shape = [&](const trace::Value& value) {
    limits.sizes.insert(limits.sizes.end(), value.sizes.begin(), value.sizes.end());
    limits.shapes.emplace_back(value.sizes.begin(), value.sizes.end());
  };
  const auto& judged = *loaded_.program->phases()[loaded_.program->judged()].phase;
  for (const auto id : trace::tensors_in(judged.output)) take_shape(loaded_.trace.values[id]);
  for (const auto id : of_call(call)) {
    const auto& value = loaded_.trace.values[id];
    take_shape(value);
    if (trace::is_integral(value.dtype) && loaded_.replay->bound(value.storage))
      integers.push_back({.tensor = loaded_.replay->value(id),
                          .use = use_in_forward(id),
                          .fixed = loaded_.trace.storages[value.storage].pinned});
  }
  for (const auto& phase : loaded_.trace.phases)
    if (phase.kind == trace::PhaseKind::kMakeInputs && phase.call == call)
      add_numbers(phase.inputs, limits.numbers);
  return redraw_together(integers, kind, std::move(limits), generator);
}

}  // namespace nereid::replay
