#include "nereid/replay/worker/trial/trial_forward.h"

#include "nereid/replay/worker/trial/forward_traits.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {
constexpr double kFactorOfPlaces = 4;  // times the reference's own error of the values that indices point to
}  // namespace

at::Generator make_generator(uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  generator.set_current_seed(seed);
  return generator;
}

void TrialForward::read_traits() {
  coarse = is_coarse(trace());
  near_one = has_approximate_functions(trace());
  bounds = bounds_of_clamps(trace());
  makers = index_makers(trace());
}

void TrialForward::run_own(IndexOperands& values) {
  struct Exchanged {
    Replay& replay;
    ~Exchanged() { replay.exchange_operands({}); }
  } exchanged{own()};
  own().exchange_operands(keep_operands(values));
  own().run_judged(options);
}

std::vector<at::Tensor> TrialForward::recompute(Float64Reference& recomputed, Change change) {
  change.reorder = reorder;
  return recomputed.run(own(), options, outputs, std::move(change));
}

Float64Reference* TrialForward::truth_reference(const Comparison& comparison) {
  return comparison.oracle == Oracle::kFloat64 ? references.in_float64() : references.in_own_dtypes();
}

Replay::Exchange TrialForward::keep_operands(IndexOperands& values) const {
  if (makers.empty() || frugal) return {};
  return [this, &values](int step, ValueId id, const at::Tensor& operand) {
    for (const auto& maker : makers)
      if (maker.step == step && maker.operand == id)
        values[step] = operand.detach().to(c10::kDouble, false, true);
    return operand;
  };
}

void TrialForward::widen(std::vector<OutputTensors>& outputs, Float64Reference& recomputed, Change change,
                         std::optional<ErrorStatistics::Sample> kind, bool rounded) {
  IndexOperands values;
  change.exchange = keep_operands(values);
  auto near = recompute(recomputed, std::move(change));
  widen_places(outputs, values);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (rounded) near[i] = near[i].to(scalar_type(outputs[i].dtype));
    replay::widen(outputs[i], near[i], kind);
    near[i].reset();
  }
}

void TrialForward::widen_places(std::vector<OutputTensors>& outputs, const IndexOperands& values) const {
  for (auto& output : outputs)
    if (output.places && values.contains(output.chosen_at)) {
      const auto maker = std::ranges::find(makers, output.chosen_at, &IndexMaker::step);
      const double eps = epsilon(trace().values[maker->operand].dtype);
      output.places->widen(values.at(output.chosen_at), kFactorOfPlaces, eps);
    }
}

}  // namespace nereid::replay
