#include "nereid/replay/worker/trial/index_choices.h"

#include <algorithm>
#include <functional>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

namespace {
constexpr int kChoices = 15;  // among equals that are tried
// How far from the best a number may be, in ulps, to be equal to it once it is rounded.
constexpr double kUlpsOfEquals[] = {0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4};
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

namespace {

// The float64 reference with other choices of these makers: choose(maker, what it made).
void adopt_choice(TrialForward& forward, const std::vector<const IndexMaker*>& makers,
                  std::vector<OutputTensors>& outputs,
                  const std::function<at::Tensor(const IndexMaker&, const at::Tensor&)>& choose) {
  const auto others = forward.recompute(*forward.references.in_float64(),
                                        {.watch = [&](StorageId storage, const at::Tensor& made) {
                                          for (const auto* maker : makers)
                                            if (forward.trace().values[maker->result].storage == storage)
                                              made.copy_(choose(*maker, made));
                                        }});
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].places) adopt_nearest(outputs[i], others[i]);
}

// Makers of one place among numbers that rounding may make equal: no inputs, which are what they are.
std::vector<const IndexMaker*> made_equal_by_rounding(const TrialForward& forward,
                                                      const IndexOperands& values,
                                                      const IndexOperands& own_values, double most) {
  std::vector<const IndexMaker*> makers;
  for (const auto& maker : forward.makers) {
    if (!maker.one || !values.contains(maker.step) || !own_values.contains(maker.step)) continue;
    const auto& exact = values.at(maker.step);
    const bool rounded = !exact.equal(own_values.at(maker.step));
    const double eps = epsilon(forward.trace().values[maker.operand].dtype);
    if (rounded && has_near_ties(maker, exact, most * eps)) makers.push_back(&maker);
  }
  return makers;
}

}  // namespace

bool choose_among_equals(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs, const IndexOperands& values,
                         const IndexOperands& own_values) {
  auto* recomputed =
      comparison.oracle == Oracle::kFloat64 && !forward.frugal ? forward.references.in_float64() : nullptr;
  const bool all_places =
      std::ranges::all_of(outputs, [](const OutputTensors& o) { return o.places != nullptr; });
  if (!recomputed || all_places) return false;
  std::vector<const IndexMaker*> open;
  for (const auto& maker : forward.makers)
    if (!maker.stable && values.contains(maker.step) && has_ties(maker, values.at(maker.step)))
      open.push_back(&maker);
  for (int choice = 1; choice <= kChoices && !open.empty(); ++choice) {
    auto generator = make_generator(trial.seed + 7777 + choice);
    adopt_choice(forward, open, outputs, [&](const IndexMaker& maker, const at::Tensor& made) {
      return other_choice(maker, values.at(maker.step), made, choice, generator);
    });
  }
  const double most = forward.coarse ? 1 : std::end(kUlpsOfEquals)[-1];
  const auto rounded = made_equal_by_rounding(forward, values, own_values, most);
  for (const double ulps : kUlpsOfEquals) {
    if (rounded.empty() || ulps > most) break;
    for (const bool last : {false, true})
      adopt_choice(forward, rounded, outputs, [&](const IndexMaker& maker, const at::Tensor& made) {
        const double within = ulps * epsilon(forward.trace().values[maker.operand].dtype);
        return choice_within(maker, values.at(maker.step), made, within, last);
      });
  }
  return !open.empty() || !rounded.empty();
}

}  // namespace nereid::replay
