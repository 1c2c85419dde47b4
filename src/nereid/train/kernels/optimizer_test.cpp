#include "nereid/train/kernels/optimizer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "nereid/lm/decoder/weights.h"

namespace nereid::train {
namespace {

lm::Config small_config() {
  lm::Config config;
  config.vocab_size = 97, config.hidden_size = 32, config.intermediate_size = 48, config.layers = 2;
  config.heads = 4, config.key_value_heads = 2, config.head_dim = 8;
  config.dtype = lm::Dtype::kF32;
  return config;
}

TEST(OptimizerTest, OffloadedStepsAreTheSamePieceByPiece) {
  const lm::Weights weights = lm::make_weights(small_config(), at::kCPU);
  const int64_t all = weights.layout.elements, begin = 64, end = all - 128;  // of one rank of several
  const at::TensorOptions host = at::TensorOptions(at::kCPU);
  const OptimizerSettings settings{.learning_rate = 0.01, .weight_decay = 0.1};
  const at::Tensor start = at::randn({end - begin});
  for (const int64_t most : {int64_t{1} << 26, int64_t{1024}, int64_t{2048}}) {
    Optimizer whole(weights.layout, settings, begin, end, host);
    Optimizer pieces(weights.layout, settings, begin, end, host);
    const at::Tensor master = start.clone(), offloaded = start.clone();
    const at::Tensor rounded = start.to(at::kBFloat16);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor gradient = at::randn({end - begin});
      whole.step(master, gradient, 0.5);
      pieces.step_offloaded(offloaded, gradient, rounded, 0.5, most);
    }
    EXPECT_TRUE(at::equal(master, offloaded)) << most;
    EXPECT_TRUE(at::equal(whole.first(), pieces.first()) && at::equal(whole.second(), pieces.second()));
    EXPECT_EQ(pieces.steps(), 3);
    EXPECT_FALSE(at::equal(master, start));
    // Gaps between parameters belong to no piece: only what does follows.
    EXPECT_LT((rounded.to(at::kFloat) - master).abs().max().item<float>(), 0.1);
  }
}

}  // namespace
}  // namespace nereid::train
