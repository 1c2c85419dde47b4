#include "nereid/train/kernels/linear_cross_entropy.h"

#include <gtest/gtest.h>

namespace nereid::train {
namespace {

TEST(LinearCrossEntropy, ChunksBeginWhereKernelsMayRead) {
  for (const int64_t vocab :
       std::initializer_list<int64_t>{61, 4'096, 32'768, 151'936, 128'256, 3'000'000'000}) {
    const int64_t rows = micro_batch_size(vocab);
    EXPECT_EQ(rows * static_cast<int64_t>(sizeof(int64_t)) % 16, 0) << vocab;  // of the targets
    EXPECT_GE(rows, 1) << vocab;
  }
  EXPECT_EQ(micro_batch_size(151'936), 832);          // 883 make 2^27 logits
  EXPECT_EQ(micro_batch_size(151'936, true), 7'040);  // 7,067 make 2^30
}

}  // namespace
}  // namespace nereid::train
