#include "nereid/replay/worker/inputs/tf32_products.h"

#include <ATen/Context.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

// A key that PyTorch keeps for tests of dispatch: nothing else uses it.
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

struct Current {
  Tf32Rounding rounding;
  uint64_t call = 0;
};
thread_local Current current;

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t z = (a + 0x9e3779b97f4a7c15) ^ (b * 0xbf58476d1ce4e5b9);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void round_and_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  const auto& arguments = op.schema().arguments();
  const auto first = stack->size() - arguments.size();
  // All steps of a recurrent layer are one product of one kernel: the factors' last sizes say which.
  uint64_t product = current.call;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const auto& given = (*stack)[first + i]; given.isTensor() && given.toTensor().dim() > 0)
      product = mixed(product, static_cast<uint64_t>(given.toTensor().size(-1)));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto& given = (*stack)[first + i]; given.isTensor())
      given = rounded_factor(op, i, given.toTensor(), current.rounding, product);
  op.callBoxed(stack);
}

}  // namespace

bool Tf32Rounding::truncates(uint64_t factor) const {
  if (kind != Kind::kMixed) return kind == Kind::kTruncated;
  return ((mixed(factor, draw / 2) ^ draw) & 1) != 0;
}

at::Tensor rounded_to_tf32(const at::Tensor& tensor, bool truncated) {
  const auto bits = tensor.contiguous().view(c10::kLong).add(truncated ? 0 : int64_t{1} << 41);
  const auto rounded = bits.bitwise_and(~((int64_t{1} << 42) - 1)).view(c10::kDouble);
  return at::where(at::isfinite(tensor), rounded, tensor);
}

at::Tensor rounded_factor(const c10::OperatorHandle& op, size_t argument, const at::Tensor& tensor,
                          const Tf32Rounding& rounding, uint64_t call) {
  const auto& name = op.schema().arguments()[argument].name();
  const bool adds_self = op.schema().name().find("add") != std::string::npos;  // addmm, baddbmm, addmv
  const bool factor = name != "bias" && !(adds_self && name == "self") && name != "hx" && name != "attn_mask";
  if (!factor || !tensor.defined() || tensor.scalar_type() != c10::kDouble) return tensor;
  return rounded_to_tf32(tensor, rounding.truncates(mixed(call, argument)));
}

bool makes_several_products(std::string_view op) {
  constexpr std::string_view kOps[] = {
      "lstm",     "gru",           "rnn_tanh",      "rnn_relu",     "lstm_cell",
      "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "chain_matmul", "scaled_dot_product_attention"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

RoundedProducts::RoundedProducts(const Tf32Rounding& rounding, uint64_t call)
    : cudnn_(at::globalContext().userEnabledCuDNN()),
      flash_(at::globalContext().userEnabledFlashSDP()),
      efficient_(at::globalContext().userEnabledMemEfficientSDP()) {
  current = {rounding, call};
  at::globalContext().setUserEnabledCuDNN(false);
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setSDPUseMemEfficient(false);
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

RoundedProducts::~RoundedProducts() {
  c10::impl::tls_set_dispatch_key_included(kKey, false);
  at::globalContext().setUserEnabledCuDNN(cudnn_);
  at::globalContext().setSDPUseFlash(flash_);
  at::globalContext().setSDPUseMemEfficient(efficient_);
}

}  // namespace nereid::replay

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, library) {
  for (const char* op : {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution"})
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&nereid::replay::round_and_call>());
}
