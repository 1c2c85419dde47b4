#include "nereid/train/kernels/recompute.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/rms_norm.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

namespace nereid::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the layers of one forward share.
struct LayerCall : torch::CustomClassHolder {
  const lm::Weights* weights;
  lm::Rotation rotation;
  std::shared_ptr<lm::Attention> attention;
  at::Tensor run(int64_t layer, const at::Tensor& hidden) const {
    return lm::layer_forward(*weights, layer, hidden, rotation, *attention);
  }
};

class RecomputedLayer : public torch::autograd::Function<RecomputedLayer> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const c10::intrusive_ptr<LayerCall>& call, int64_t layer) {
    context->save_for_backward({hidden});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    context->saved_data["layer"] = layer;
    return call->run(layer, hidden);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = c10::static_intrusive_pointer_cast<LayerCall>(context->saved_data["call"].toCapsule());
    const at::AutoGradMode with_gradients(true);
    const at::Tensor hidden = context->get_saved_variables()[0].detach().requires_grad_(true);
    const at::Tensor result = call->run(context->saved_data["layer"].toInt(), hidden);
    torch::autograd::backward({result}, {gradients[0]});  // adds to the parameters' gradients
    return {hidden.grad(), {}, {}};
  }
};

}  // namespace

at::Tensor training_hidden_states(const lm::Weights& weights, const at::Tensor& tokens,
                                  const at::Tensor& positions, std::shared_ptr<lm::Attention> attention,
                                  bool recompute) {
  if (!recompute) return lm::hidden_states(weights, tokens, positions, *attention);
  auto call = c10::make_intrusive<LayerCall>();
  call->weights = &weights;
  call->rotation = lm::rotation_at(weights, positions);
  call->attention = std::move(attention);
  at::Tensor hidden = at::embedding(weights.embedding, tokens);
  for (int64_t layer = 0; layer < weights.config.layers; ++layer)
    hidden = RecomputedLayer::apply(hidden, call, layer);
  return at::rms_norm(hidden, {weights.norm.size(0)}, weights.norm, weights.config.rms_norm_eps);
}

}  // namespace nereid::train
