#include "nereid/engine/runner/training_operators.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <bit>

#include "nereid/base/check.h"

namespace nereid::engine {
namespace {

constexpr int64_t kPairTile = 2048;

enum Kernel : size_t { kRotateQueries, kRotateKeys, kGatePair, kGatePairBackward };

class KernelOperators : public model::Operators {
 public:
  KernelOperators(const model::Config& config, Launcher& launcher, size_t first) : config_(config), launcher_(launcher), first_(first) {}

  at::Tensor rotate(const at::Tensor& x, const model::Rotation& rotation) override;
  at::Tensor gated(const at::Tensor& gate, const at::Tensor& up) override;

  // Without gradients. sign: 1, or -1 to turn back.
  at::Tensor turned(const at::Tensor& given, const at::Tensor& cosines, const at::Tensor& sines, float sign) {
    const auto x = given.contiguous();
    NEREID_CHECK(x.size(1) == config_.heads || x.size(1) == config_.key_value_heads, "{} or {} heads, got {}", config_.heads, config_.key_value_heads, x.size(1));
    auto result = at::empty_like(x);
    launch(x.size(1) == config_.heads ? kRotateQueries : kRotateKeys, {x.size(0), 1, 1}, {x, cosines, sines, result, sign});
    return result;
  }
  void launch(size_t kernel, const std::array<int64_t, 3>& grid, const std::vector<KernelArgument>& arguments) { launcher_.launch(first_ + kernel, grid, arguments); }

 private:
  model::Config config_;
  Launcher& launcher_;
  size_t first_;
};

std::array<int64_t, 3> grid_of(const at::Tensor& x) { return {(x.numel() + kPairTile - 1) / kPairTile, 1, 1}; }

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// The weights hold the operators for as long as there is a backward pass to come, so a plain pointer to them is kept.
KernelOperators& operators_of(AutogradContext* context) { return *reinterpret_cast<KernelOperators*>(context->saved_data["operators"].toInt()); }

struct Rotate : torch::autograd::Function<Rotate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, int64_t operators) {
    context->save_for_backward({cosines, sines});
    context->saved_data["operators"] = operators;
    return operators_of(context).turned(x, cosines, sines, 1);
  }
  // A turn back is the turn's own transpose.
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {operators_of(context).turned(gradients[0], saved[0], saved[1], -1), {}, {}, {}};
  }
};

struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given_gate, const at::Tensor& given_up, int64_t operators) {
    const auto gate = given_gate.contiguous(), up = given_up.contiguous();
    context->save_for_backward({gate, up});
    context->saved_data["operators"] = operators;
    auto result = at::empty_like(gate);
    operators_of(context).launch(kGatePair, grid_of(gate), {gate, up, result, gate.numel()});
    return result;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = gradients[0].contiguous();
    auto of_gate = at::empty_like(saved[0]), of_up = at::empty_like(saved[1]);
    operators_of(context).launch(kGatePairBackward, grid_of(gradient), {gradient, saved[0], saved[1], of_gate, of_up, gradient.numel()});
    return {of_gate, of_up, {}};
  }
};

at::Tensor KernelOperators::rotate(const at::Tensor& x, const model::Rotation& rotation) {
  return Rotate::apply(x, rotation.cosines, rotation.sines, reinterpret_cast<int64_t>(this));
}

at::Tensor KernelOperators::gated(const at::Tensor& gate, const at::Tensor& up) { return Gate::apply(gate, up, reinterpret_cast<int64_t>(this)); }

}  // namespace

Result<std::shared_ptr<model::Operators>> make_training_operators(const model::Config& config, Launcher& launcher, const Installation& installation) {
  const std::string element = element_name(config.dtype);
  const auto padded = [](int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); };
  const auto rotate = [&](int64_t heads) {
    return KernelRequest{"rotate", element, {{"HEADS", heads}, {"HEADS_PADDED", padded(heads)}, {"DIM", config.head_dim}, {"HALF_PADDED", padded(config.head_dim / 2)}}};
  };
  NEREID_TRY(auto kernels, build_kernels(installation, launcher.arch(),
                                         {rotate(config.heads), rotate(config.key_value_heads), {"gate_pair", element, {{"TILE", kPairTile}}},
                                          {"gate_pair_backward", element, {{"TILE", kPairTile}}}}));
  NEREID_TRY(const size_t first, launcher.load(std::move(kernels)));
  return std::shared_ptr<model::Operators>(std::make_shared<KernelOperators>(config, launcher, first));
}

}  // namespace nereid::engine
