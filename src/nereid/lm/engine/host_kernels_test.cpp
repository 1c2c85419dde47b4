#include "nereid/lm/engine/host_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace nereid::lm {
namespace {

// Against softmax(q k / sqrt(dim)) v in float64, for heads and sizes that are, and are not, multiples of what
// is computed at once.
TEST(HostKernels, HeadsAttendToTheKeysThatTheyShare) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const size_t heads : {1, 3, 4, 5, 8})
    for (const size_t dim : {3, 8, 16, 20, 64, 100, 128})
      for (const size_t keys : {1, 7, 16, 33}) {
        const size_t block_size = 8, shared = 2, stride = shared * dim;
        std::vector<int32_t> blocks{4, 1, 3, 0, 2};
        std::vector<float> stored(2 * blocks.size() * block_size * stride), queries(heads * dim),
            out(heads * dim), scores(4 * keys);
        for (auto* numbers : {&stored, &queries})
          for (float& number : *numbers) number = normal(random);
        const HostBlocks key{stored.data() + dim, blocks.data(), block_size, block_size * stride, stride};
        HostBlocks value = key;
        value.base += stored.size() / 2;
        const auto at = [&](const HostBlocks& in, size_t t, size_t i) {
          return double{
              in.base[(static_cast<size_t>(blocks[t / block_size]) * block_size + t % block_size) * stride +
                      i]};
        };
        const float scale = 1 / std::sqrt(static_cast<float>(dim));
        host_attend(queries.data(), heads, dim, keys, key, value, scale, scores.data(), out.data());
        for (size_t h = 0; h < heads; ++h) {
          std::vector<double> weights(keys), expected(dim);
          double total = 0, largest = -INFINITY;
          for (size_t t = 0; t < keys; ++t) {
            for (size_t i = 0; i < dim; ++i)
              weights[t] += double{queries[h * dim + i]} * at(key, t, i) * double{scale};
            largest = std::max(largest, weights[t]);
          }
          for (double& weight : weights) total += weight = std::exp(weight - largest);
          for (size_t i = 0; i < dim; ++i) {
            for (size_t t = 0; t < keys; ++t) expected[i] += weights[t] / total * at(value, t, i);
            EXPECT_NEAR(out[h * dim + i], expected[i], 1e-5)
                << heads << " heads of " << dim << ", " << keys << " keys";
          }
        }
      }
}

}  // namespace
}  // namespace nereid::lm
