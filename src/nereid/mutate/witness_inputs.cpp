#include "nereid/mutate/witness_inputs.h"

#include <array>
#include <set>

namespace nereid::mutate {
namespace {

using trace::Arg;

struct Distribution {
  const char* name;
  bool inputs = true, parameters = false;
  // One operator in place, or two: each with numbers after the tensor.
  struct Step {
    const char* op;
    std::array<double, 2> numbers{};
    int count = 0;
    bool generator = false;
  };
  std::array<Step, 2> steps{};
};

constexpr std::array kDistributions = {
    Distribution{"normal, wider", true, false, {{{"aten::normal_", {1, 30}, 2, true}}}},
    Distribution{"normal, far off", true, false, {{{"aten::normal_", {-20, 6}, 2, true}}}},
    Distribution{"scaled and shifted",
                 true,
                 false,
                 {{{"aten::mul_.Scalar", {2}, 1}, {"aten::add_.Scalar", {7, 1}, 2}}}},
    Distribution{"uniform", true, false, {{{"aten::uniform_", {-3, 3}, 2, true}}}},
    Distribution{"cauchy", true, false, {{{"aten::cauchy_", {0, 1}, 2, true}}}},
    Distribution{"log-normal", true, false, {{{"aten::log_normal_", {0, 2}, 2, true}}}},
    Distribution{"exponential", true, false, {{{"aten::exponential_", {0.5}, 1, true}}}},
    Distribution{"cubes", true, false, {{{"aten::normal_", {0, 2}, 2, true}, {"aten::pow_.Scalar", {3}, 1}}}},
    Distribution{"waves", true, false, {{{"aten::mul_.Scalar", {3}, 1}, {"aten::sin_", {}, 0}}}},
    Distribution{"half zeros", true, false, {{{"aten::normal_", {0, 2}, 2, true}, {"aten::relu_", {}, 0}}}},
    Distribution{
        "whole numbers", true, false, {{{"aten::normal_", {0, 3}, 2, true}, {"aten::round_", {}, 0}}}},
    Distribution{"bits", true, false, {{{"aten::bernoulli_.float", {0.5}, 1, true}}}},
    Distribution{"scaled by 20", true, false, {{{"aten::mul_.Scalar", {20}, 1}}}},
    Distribution{"scaled by 100", true, false, {{{"aten::mul_.Scalar", {100}, 1}}}},
    Distribution{"scaled by 0.001", true, false, {{{"aten::mul_.Scalar", {0.001}, 1}}}},
    Distribution{"negated", true, false, {{{"aten::neg_", {}, 0}}}},
    Distribution{"normal parameters", false, true, {{{"aten::normal_", {0, 1}, 2, true}}}},
    Distribution{"uniform parameters", false, true, {{{"aten::uniform_", {-2, 2}, 2, true}}}},
    Distribution{"positive parameters", false, true, {{{"aten::uniform_", {0.25, 4}, 2, true}}}},
    Distribution{"normal inputs and parameters", true, true, {{{"aten::normal_", {0.5, 2}, 2, true}}}},
};

void add_steps(const Distribution& distribution, trace::ValueId value, trace::Phase& phase) {
  for (const auto& step : distribution.steps) {
    if (step.op == nullptr) continue;
    trace::Call call;
    call.op = step.op;
    call.args.push_back(Arg{trace::TensorRef{value}});
    for (int i = 0; i < step.count; ++i) call.args.push_back(Arg{step.numbers[static_cast<size_t>(i)]});
    if (step.generator) call.kwargs.emplace_back("generator", Arg{trace::None{}});
    call.result = Arg{trace::TensorRef{value}};
    phase.steps.emplace_back(std::move(call));
  }
}

}  // namespace

int distributions() { return static_cast<int>(kDistributions.size()); }
std::string_view distribution_name(int d) { return kDistributions[static_cast<size_t>(d)].name; }

std::optional<trace::Trace> with_inputs(const trace::Trace& reference, int number) {
  const auto& distribution = kDistributions[static_cast<size_t>(number)];
  trace::Trace changed = reference;
  bool any = false;
  const auto change = [&](trace::ValueId value, trace::Phase& phase, std::set<trace::StorageId>& done) {
    const auto& v = reference.values[static_cast<size_t>(value)];
    const bool real = v.dtype == trace::DType::kF32 || v.dtype == trace::DType::kF16 ||
                      v.dtype == trace::DType::kBF16 || v.dtype == trace::DType::kF64;
    if (!real || trace::element_count(v) == 0 || !done.insert(v.storage).second) return;
    add_steps(distribution, value, phase);
    any = true;
  };
  for (auto& phase : changed.phases) {
    std::set<trace::StorageId> done;
    if (distribution.inputs && phase.kind == trace::PhaseKind::kMakeInputs)
      for (const auto value : trace::tensors_in(phase.inputs)) change(value, phase, done);
    if (distribution.parameters && phase.kind == trace::PhaseKind::kInit)
      for (const auto& state : reference.state)
        if (state.parameter) change(state.value, phase, done);
  }
  if (!any) return std::nullopt;
  return changed;
}

}  // namespace nereid::mutate
