#include "nereid/synth/traced.h"

#include "nereid/ops/calls.h"

namespace nereid::synth {
namespace {

using ops::Tensor;
using trace::DType;

ops::Sizes sizes_of(const ops::Shape& shape) { return {shape.dims.begin(), shape.dims.begin() + shape.rank}; }

DType type_of(ops::Range range) {
  if (range == ops::Range::kIndex) return DType::kI64;
  return range == ops::Range::kMask ? DType::kBool : DType::kF32;
}

// As torch.nn names the tensors of its layers.
std::string_view name_in_module(std::string_view own) {
  if (own == "w") return "weight_ih";
  if (own == "u") return "weight_hh";
  if (own == "b1") return "bias_ih";
  if (own == "b2") return "bias_hh";
  return own;
}

class Tracing {
 public:
  Tracing(const Program& program, const CodeStyle& style, const Layout& layout, trace::Trace& trace)
      : program_(program),
        style_(style),
        layout_(layout),
        trace_(trace),
        to_(trace),
        inputs_(program.inputs.size()),
        own_(program.steps.size()) {}

  bool run() {
    trace_.phases.push_back(
        {.kind = trace::PhaseKind::kForward, .call = 0, .steps = {}, .inputs = {}, .output = {}});
    state();
    arguments();
    for (size_t i = 0; i < program_.steps.size(); ++i)
      if (!step(i)) return false;
    const ops::Arg result = ops::arg(results_.back());
    auto& output = trace_.phases.back().output;
    output = result;
    if (style_.second_output < 0) return true;
    const Tensor other = results_[static_cast<size_t>(style_.second_output)];
    if (style_.returned == CodeStyle::kDict) {
      const auto keys = result_keys(style_);
      trace::Dict named;
      named.items = {{std::string(keys[0]), result}, {std::string(keys[1]), ops::arg(other)}};
      output = {std::move(named)};
    } else {
      output = ops::tensors({results_.back(), other}, style_.returned == CodeStyle::kTuple);
    }
    return true;
  }

 private:
  Tensor kept(const ops::Sizes& sizes, DType type, std::string name, bool parameter) {
    const Tensor made = to_.made(sizes, type);
    to_.storage(made).role = parameter ? trace::Role::kParameter : trace::Role::kBuffer;
    to_.storage(made).name = name;
    trace_.state.push_back({.name = std::move(name), .value = made.value, .parameter = parameter});
    return made;
  }

  void state() {
    for (const Layout::Owner& owner : layout_.state) {
      if (owner.input) {
        inputs_[owner.index] = kept(sizes_of(program_.inputs[owner.index].shape), DType::kF32,
                                    layout_.parameter[owner.index], true);
        continue;
      }
      const bool module = style_.spelling[owner.index] == Spelling::kModule;
      const ops::Applied& applied = program_.steps[owner.index].applied;
      for (const ops::Weight& weight : ops::weights_of(applied)) {
        if (weight.buffer()) continue;
        std::string name = layout_.own[owner.index];
        name += module ? name_in_module(weight.name) : weight.name;
        own_[owner.index].push_back(kept(ops::shape_of(weight, applied), DType::kF32, std::move(name), true));
      }
    }
    for (const Layout::Owner& owner : layout_.state) {
      if (owner.input) continue;
      const bool module = style_.spelling[owner.index] == Spelling::kModule;
      const std::string_view name = program_.steps[owner.index].applied.op->name;
      if (name == "batch_norm_eval" || (name == "batch_norm" && module)) statistics(owner.index, module);
    }
  }
  void statistics(size_t step, bool module) {
    const ops::Sizes channels = {program_.steps[step].applied.out.dims[1]};
    const std::string& prefix = layout_.own[step];
    for (const char* name : {"running_mean", "running_var"})
      own_[step].push_back(kept(channels, DType::kF32, prefix + name, false));
    if (!module) return;
    // Made of a number that the layer's constructor writes down.
    own_[step].push_back(kept({}, DType::kI64, prefix + "num_batches_tracked", false));
    trace::Storage& count = to_.storage(own_[step].back());
    count.role = trace::Role::kConstant, count.name.clear(), count.data.assign(8, '\0');
  }

  void arguments() {
    std::vector<Tensor> given;
    for (const uint16_t index : layout_.arguments) {
      const Input& input = program_.inputs[index];
      const Tensor made = inputs_[index] = to_.made(sizes_of(input.shape), type_of(input.range));
      to_.storage(made).role = trace::Role::kInput;
      to_.storage(made).name = std::to_string(given.size());
      given.push_back(made);
    }
    trace_.phases.back().inputs = ops::tensors(given);
  }

  bool step(size_t i) {
    const Step& step = program_.steps[i];
    std::vector<Tensor> operands;
    for (const Ref ref : step.operands)
      operands.push_back(ref.fresh ? inputs_[ref.index] : results_[ref.index]);
    const ops::Applied applied = styled_call(program_, style_, i);
    to_.at(layout_.lines[i], layout_.before[i]);
    const auto made = ops::record(to_, applied, style_.spelling[i], operands, own_[i]);
    if (!made) return false;
    results_.push_back(*made);
    return true;
  }

  const Program& program_;
  const CodeStyle& style_;
  const Layout& layout_;
  trace::Trace& trace_;
  ops::Recording to_;
  std::vector<Tensor> inputs_, results_;
  std::vector<std::vector<Tensor>> own_;  // of each step
};

}  // namespace

std::optional<trace::Trace> traced(const Program& program, const CodeStyle& style, const Layout& layout,
                                   const std::string& file) {
  trace::Trace trace;
  trace.file = file, trace.class_name = "Model";
  // PyTorch's own, which no program changes.
  trace.flags = {{"matmul.allow_tf32", 0},
                 {"cudnn.allow_tf32", 1},
                 {"cudnn.enabled", 1},
                 {"cudnn.benchmark", 0},
                 {"cudnn.deterministic", 0},
                 {"matmul.allow_fp16_reduced_precision_reduction", 1},
                 {"matmul.allow_bf16_reduced_precision_reduction", 1},
                 {"deterministic_algorithms", 0},
                 {"autocast", 0}};
  if (!Tracing(program, style, layout, trace).run()) return std::nullopt;
  return trace;
}

}  // namespace nereid::synth
