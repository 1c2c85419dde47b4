#include "nereid/engine/runner/training_operators.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nereid/base/check.h"

namespace nereid::engine {
namespace {

constexpr int64_t kPairTile = 2048;  // columns of the gate that a program does
constexpr int64_t kNormRows = 32;    // heads of tokens
constexpr int64_t kLossTile = 8192;  // logits

enum Kernel : size_t {
  kRotateQueries,
  kRotateKeys,
  kGatePair,
  kGatePairBackward,
  kTokenLosses,
  kNormQueries,  // from here on, where the model has such norms
  kNormKeys,
  kNormQueriesBackward,
  kNormKeysBackward
};

class KernelOperators : public model::Operators {
 public:
  KernelOperators(const model::Config& config, Launcher& launcher, size_t first) : config_(config), launcher_(launcher), first_(first) {}

  at::Tensor rotate(const at::Tensor& x, const model::Rotation& rotation) override;
  at::Tensor norm_rotate(const at::Tensor& x, const at::Tensor& weight, const model::Rotation& rotation) override;
  at::Tensor gated(const at::Tensor& gate, const at::Tensor& up) override;
  at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights) override {
    NEREID_CHECK(logits.is_contiguous() && logits.size(1) == config_.vocab_size, "rows of {} logits", config_.vocab_size);
    auto found = at::empty({logits.size(0)}, weights.options());
    launch(kTokenLosses, {logits.size(0), 1, 1}, {logits, targets.contiguous(), weights.contiguous(), found});
    return found;
  }

  // Without gradients. sign: 1, or -1 to turn back.
  at::Tensor turned(const at::Tensor& given, const at::Tensor& cosines, const at::Tensor& sines, float sign) {
    const auto x = given.contiguous();
    NEREID_CHECK(x.size(1) == config_.heads || x.size(1) == config_.key_value_heads, "{} or {} heads, got {}", config_.heads, config_.key_value_heads, x.size(1));
    auto result = at::empty_like(x);
    launch(x.size(1) == config_.heads ? kRotateQueries : kRotateKeys, {x.size(0), 1, 1}, {x, cosines, sines, result, sign});
    return result;
  }
  at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& cosines, const at::Tensor& sines) {
    auto result = at::empty_like(x);
    launch(x.size(1) == config_.heads ? kNormQueries : kNormKeys, {programs(x), 1, 1}, {x, weight, cosines, sines, result, rows(x), epsilon()});
    return result;
  }
  std::pair<at::Tensor, at::Tensor> normed_backward(const at::Tensor& given, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& cosines, const at::Tensor& sines) {
    const auto gradient = given.contiguous();
    auto of_x = at::empty_like(x), of_weight = at::empty({programs(x), config_.head_dim}, cosines.options());
    launch(x.size(1) == config_.heads ? kNormQueriesBackward : kNormKeysBackward, {programs(x), 1, 1},
           {gradient, x, weight, cosines, sines, of_x, of_weight, rows(x), epsilon()});
    return {of_x, of_weight.sum(0).to(weight.scalar_type())};
  }
  void launch(size_t kernel, const std::array<int64_t, 3>& grid, const std::vector<KernelArgument>& arguments) { launcher_.launch(first_ + kernel, grid, arguments); }

 private:
  static int32_t rows(const at::Tensor& x) { return static_cast<int32_t>(x.size(0) * x.size(1)); }
  static int64_t programs(const at::Tensor& x) { return (rows(x) + kNormRows - 1) / kNormRows; }
  float epsilon() const { return static_cast<float>(config_.rms_norm_eps); }

  model::Config config_;
  Launcher& launcher_;
  size_t first_;
};

std::array<int64_t, 3> grid_of(const at::Tensor& x) { return {x.size(0), (x.size(1) + kPairTile - 1) / kPairTile, 1}; }

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

struct NormRotate : torch::autograd::Function<NormRotate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight, const at::Tensor& cosines, const at::Tensor& sines, int64_t operators) {
    const auto x = given.contiguous();
    context->save_for_backward({x, weight, cosines, sines});
    context->saved_data["operators"] = operators;
    return operators_of(context).normed(x, weight, cosines, sines);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    auto [of_x, of_weight] = operators_of(context).normed_backward(gradients[0], saved[0], saved[1], saved[2], saved[3]);
    return {of_x, of_weight, {}, {}, {}};
  }
};

struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given_gate, const at::Tensor& given_up, int64_t operators) {
    const auto gate = given_gate.contiguous(), up = given_up.contiguous();
    context->save_for_backward({gate, up});
    context->saved_data["operators"] = operators;
    auto result = at::empty_like(gate);
    operators_of(context).launch(kGatePair, grid_of(gate), {gate, up, result});
    return result;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = gradients[0].contiguous();
    auto of_gate = at::empty_like(saved[0]), of_up = at::empty_like(saved[1]);
    operators_of(context).launch(kGatePairBackward, grid_of(gradient), {gradient, saved[0], saved[1], of_gate, of_up});
    return {of_gate, of_up, {}};
  }
};

at::Tensor KernelOperators::rotate(const at::Tensor& x, const model::Rotation& rotation) {
  return Rotate::apply(x, rotation.cosines, rotation.sines, reinterpret_cast<int64_t>(this));
}

at::Tensor KernelOperators::norm_rotate(const at::Tensor& x, const at::Tensor& weight, const model::Rotation& rotation) {
  return NormRotate::apply(x, weight, rotation.cosines, rotation.sines, reinterpret_cast<int64_t>(this));
}

at::Tensor KernelOperators::gated(const at::Tensor& gate, const at::Tensor& up) { return Gate::apply(gate, up, reinterpret_cast<int64_t>(this)); }

}  // namespace

Result<std::shared_ptr<model::Operators>> make_training_operators(const model::Config& config, Launcher& launcher, const Installation& installation) {
  const std::string element = element_name(config.dtype);
  const auto rotate = [&](int64_t heads) {
    return KernelRequest{"rotate", element, {{"HEADS", heads}, {"HEADS_PADDED", padded(heads)}, {"DIM", config.head_dim}, {"HALF_PADDED", padded(config.head_dim / 2)}}};
  };
  const std::map<std::string, int64_t> gate = {{"WIDTH", config.intermediate_size}, {"TILE", std::min(kPairTile, padded(config.intermediate_size))}};
  const std::map<std::string, int64_t> loss = {{"WIDTH", config.vocab_size}, {"TILE", std::min(kLossTile, padded(config.vocab_size))}};
  std::vector<KernelRequest> requests = {
      rotate(config.heads), rotate(config.key_value_heads), {"gate_pair", element, gate}, {"gate_pair_backward", element, gate}, {"token_losses", element, loss, 8}};
  if (config.query_key_norm())
    for (const char* name : {"norm_rotate", "norm_rotate_backward"})
      for (const int64_t heads : {config.heads, config.key_value_heads})
        requests.push_back({name, element, {{"HEADS", heads}, {"DIM", config.head_dim}, {"HALF_PADDED", padded(config.head_dim / 2)}, {"ROWS", kNormRows}}});
  NEREID_TRY(auto kernels, build_kernels(installation, launcher.arch(), requests));
  NEREID_TRY(const size_t first, launcher.load(std::move(kernels)));
  return std::shared_ptr<model::Operators>(std::make_shared<KernelOperators>(config, launcher, first));
}

}  // namespace nereid::engine
