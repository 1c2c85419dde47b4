#include "nereid/replay/worker/memory_digest.h"

#include <gtest/gtest.h>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

TEST(MemoryDigest, IsOfEveryByteAndItsPlace) {
  const auto options = at::TensorOptions().dtype(at::kByte);
  for (const int64_t size : {1, 7, 8, 9, 4096, 100003}) {
    const auto bytes = at::randint(0, 256, {size}, options);
    const auto digest = memory_digest(bytes, 5);
    EXPECT_EQ(memory_digest(bytes.clone(), 5), digest);
    EXPECT_NE(memory_digest(bytes, 6), digest);
    for (const int64_t at : {int64_t{0}, size / 2, size - 1})
      for (const int bit : {0, 7}) {
        auto other = bytes.clone();
        other[at].bitwise_xor_(1 << bit);
        EXPECT_NE(memory_digest(other, 5), digest) << size << " bytes, byte " << at;
      }
  }
  EXPECT_NE(memory_digest(at::zeros({8}, options), 5), memory_digest(at::zeros({16}, options), 5));
}

TEST(MemoryDigest, WordsThatChangePlacesShow) {
  auto words = at::zeros({64}, at::TensorOptions().dtype(at::kLong));
  words[3] = 1;
  auto moved = words.roll(1);
  EXPECT_NE(memory_digest(words.view(at::kByte), 1), memory_digest(moved.view(at::kByte), 1));
}

}  // namespace
}  // namespace nereid::replay
