#include "nereid/train/throughput.h"

#include <gtest/gtest.h>

#include <vector>

namespace nereid::train {
namespace {

// A layer written out: every product's FLOPs, forward once and backward twice.
TEST(Throughput, CountsEveryProductOnce) {
  lm::Config shape;
  shape.vocab_size = 1000, shape.hidden_size = 64, shape.intermediate_size = 256, shape.layers = 3;
  shape.heads = 8, shape.key_value_heads = 2, shape.head_dim = 16;
  const std::vector<int32_t> lengths{0, 10, 11};
  double forward = 0;
  for (const double n : {10, 1}) {
    const double layer = 2 * n * 64 * 128 + 2 * (2 * n * 64 * 32) + 2 * n * 128 * 64 + 3 * (2 * n * 64 * 256);
    double attention = 0;
    for (double query = 1; query <= n; ++query) attention += 2 * (2 * query * 8 * 16);  // scores, then values
    forward += 3 * (layer + attention) + 2 * n * 64 * 1000;
  }
  EXPECT_DOUBLE_EQ(training_flops(shape, lengths), 3 * forward);
}

TEST(Throughput, KnowsSomeDevices) {
  EXPECT_EQ(peak_bfloat16_flops("NVIDIA H200"), 989.4e12);
  EXPECT_EQ(peak_bfloat16_flops("NVIDIA H100 PCIe"), 756e12);
  EXPECT_EQ(peak_bfloat16_flops("cpu"), std::nullopt);
}

}  // namespace
}  // namespace nereid::train
