// Products of float32 as a GPU takes them in TF32, computed in float64: each factor is rounded or truncated
// to ten bits first, also where one operator makes several products of what it computes (a recurrent layer's
// steps, attention).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <string_view>

namespace nereid::replay {

// Nearest: half away from zero, as the conversion to TF32 does. Truncated: as tensor cores take a float32.
// Mixed: each factor by chance. Of the draws 2k and 2k + 1 the second truncates what the first rounds.
struct Tf32Rounding {
  enum class Kind { kNearest, kTruncated, kMixed } kind{};
  uint64_t draw = 0;

  // `factor`: a hash of which factor of which product it is.
  bool truncates(uint64_t factor) const;
};

at::Tensor rounded_to_tf32(const at::Tensor& tensor, bool truncated);

// `call`: another number for each call of a forward. Of an argument that is no factor, or is not in float64,
// the argument itself.
at::Tensor rounded_factor(const c10::OperatorHandle& op, size_t argument, const at::Tensor& tensor,
                          const Tf32Rounding& rounding, uint64_t call);

// The operator multiplies what it has computed before: recurrent layers, attention.
bool makes_several_products(std::string_view op);

// While it lives, factors are rounded in every product of matrices and convolution of this thread, and
// PyTorch takes no kernels that hide them (cuDNN's recurrent layers, flash attention).
class RoundedProducts {
 public:
  RoundedProducts(const Tf32Rounding& rounding, uint64_t call);
  ~RoundedProducts();
  RoundedProducts(const RoundedProducts&) = delete;
  RoundedProducts& operator=(const RoundedProducts&) = delete;

 private:
  bool cudnn_, flash_, efficient_;
};

}  // namespace nereid::replay
