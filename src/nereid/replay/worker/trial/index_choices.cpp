#include "nereid/replay/worker/trial/index_choices.h"

#include <algorithm>

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

namespace {
constexpr int kChoices = 15;  // among equals that are tried
}  // namespace

void find_places(TrialForward& forward, const Comparison& comparison, std::vector<OutputTensors>& outputs,
                 const IndexOperands& values, const IndexOperands& own_values) {
  if (comparison.oracle != Oracle::kFloat64) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!trace::is_integral(outputs[i].dtype) || outputs[i].own.numel() == 0) continue;
    const auto found = index_output(forward.trace(), forward.makers, forward.outputs[i]);
    if (!found || !values.contains(found->maker.step) || values.at(found->maker.step).numel() == 0) continue;
    outputs[i].places =
        std::make_shared<Places>(*found, forward.trace(), forward.outputs[i], values.at(found->maker.step));
    outputs[i].chosen_at = found->maker.step;
  }
  forward.widen_places(outputs, own_values);
}

bool follow_order(TrialForward& forward, const Comparison& comparison, std::vector<OutputTensors>& outputs,
                  const IndexOperands& values) {
  if (comparison.oracle != Oracle::kFloat64 || forward.frugal) return false;
  const auto storage = [&](ValueId id) { return forward.trace().values[id].storage; };
  std::map<StorageId, std::pair<IndexMaker, at::Tensor>> orders;
  for (const auto& maker : forward.makers) {
    if (!maker.open_order || !values.contains(maker.step)) continue;
    at::Tensor order;
    for (const bool places : {true, false})
      for (size_t i = 0; i < outputs.size() && !order.defined(); ++i)
        if (forward.outputs[i] == (places ? maker.result : maker.values))
          order = places ? order_of_places(maker, values.at(maker.step), outputs[i].got)
                         : order_of_values(maker, outputs[i].got);
    if (!order.defined()) continue;
    orders[storage(maker.result)] = orders[storage(maker.values)] = {maker, order};
  }
  if (orders.empty()) return false;
  forward.reorder = [orders](StorageId id, const at::Tensor& made) {
    if (const auto found = orders.find(id); found != orders.end())
      made.copy_(in_order(found->second.first, made, found->second.second));
  };
  auto truth = forward.recompute(*forward.references.in_float64(), {});
  auto& own = forward.own();
  own.watch_results(forward.reorder);
  own.run_judged(forward.options);
  own.watch_results({});
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].truth = std::move(truth[i]), outputs[i].own = taken(own, forward.outputs[i]);
    outputs[i].statistics.reset();
  }
  own.rewind();
  return true;
}

bool choose_among_equals(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs, const IndexOperands& values) {
  auto* recomputed =
      comparison.oracle == Oracle::kFloat64 && !forward.frugal ? forward.references.in_float64() : nullptr;
  std::vector<const IndexMaker*> open;
  for (const auto& maker : forward.makers)
    if (!maker.stable && values.contains(maker.step) && has_ties(maker, values.at(maker.step)))
      open.push_back(&maker);
  if (!recomputed || open.empty()) return false;
  for (int choice = 1; choice <= kChoices; ++choice) {
    auto generator = make_generator(trial.seed + 7777 + choice);
    const auto choose = [&](StorageId storage, const at::Tensor& made) {
      for (const auto* maker : open)
        if (forward.trace().values[maker->result].storage == storage)
          made.copy_(other_choice(*maker, values.at(maker->step), made, choice, generator));
    };
    const auto others = forward.recompute(*recomputed, {.watch = choose});
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i].places) adopt_nearest(outputs[i], others[i]);
  }
  return true;
}

}  // namespace nereid::replay
