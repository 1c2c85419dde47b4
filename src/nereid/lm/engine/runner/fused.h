// A model's forward in our own kernels and PyTorch's matrix products: what decoding on a GPU runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "nereid/lm/decoder/weights.h"
#include "nereid/lm/engine/runner/kernels.h"
#include "nereid/lm/engine/runner/paged_attention.h"

namespace nereid::lm {

class FusedModel : public DecodeKernel {
 public:
  // Whether there are kernels for such a model: heads of a multiple of 8 up to 256 dimensions.
  static bool takes(const lm::Config& config);
  // `launcher` outlives it.
  static Result<std::unique_ptr<FusedModel>> create(const lm::Config& config, int64_t block_size,
                                                    Launcher& launcher, const Installation& installation);

  at::Tensor attend(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& tables, const at::Tensor& lengths) override;

  // As lm::hidden_states. tokens, positions, slots: [tokens], int64.
  at::Tensor hidden_states(const lm::Weights& weights, const at::Tensor& tokens, const at::Tensor& positions,
                           const at::Tensor& slots, KvCache& cache, StoredAttention& attention);

 private:
  FusedModel(const lm::Config& config, int64_t block_size, Launcher& launcher)
      : config_(config), block_size_(block_size), launcher_(launcher) {}
  std::vector<KernelRequest> requests() const;
  void launch(size_t kernel, const std::array<int64_t, 3>& grid,
              const std::vector<KernelArgument>& arguments) {
    launcher_.launch(first_ + kernel, grid, arguments);
  }
  // In place: residual += added; the result is its norm. Both [tokens, hidden].
  at::Tensor add_and_norm(const at::Tensor& residual, const at::Tensor& added, const at::Tensor& weight);

  lm::Config config_;
  int64_t block_size_;
  Launcher& launcher_;
  size_t first_ = 0;  // of our kernels among the launcher's
};

}  // namespace nereid::lm
