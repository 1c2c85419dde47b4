// A model's forward on a CPU in our own loops (lm/engine/host_kernels.h): no operator of libtorch's, float32
// throughout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "nereid/base/thread_pool.h"
#include "nereid/lm/decoder/weights.h"
#include "nereid/lm/engine/host_kernels.h"
#include "nereid/lm/engine/runner/paged_attention.h"
#include "nereid/lm/engine/runner/step.h"

namespace nereid::lm {

class HostModel {
 public:
  // Whether it computes such a model: on a CPU, in float32 or bfloat16.
  static bool takes(const lm::Weights& weights);
  // `weights` outlives it, and may change in place. One thread reads weights as fast as several where they
  // are few.
  explicit HostModel(const lm::Weights& weights, int threads = 0) : weights_(&weights), pool_(threads) {}

  // step.wanted's logits: [wanted, vocab], float32. `cache` is float32.
  at::Tensor forward(const Step& step, KvCache& cache);

 private:
  using Floats = std::vector<float>;

  void products(const float* x, size_t rows, size_t depth, const at::Tensor& weights, const at::Tensor& bias,
                float* out);
  void rotations(const Step& step);
  void attend(const Step& step, int64_t layer, KvCache& cache);

  const lm::Weights* weights_;
  ThreadPool pool_;
  // Of a step, and kept for the next. [tokens, ...]
  Floats hidden_, normed_, heads_, seen_, gate_up_, gated_, added_, cosines_, sines_;
  std::vector<Floats> scores_;  // of each thread
};

}  // namespace nereid::lm
