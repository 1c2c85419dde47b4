#include "nereid/compiler/output/any_batch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

namespace nereid::compiler {
namespace {

using testing::HasSubstr;

// A module as it is written for a batch; a comment says which.
std::string module_for(int64_t batch) {
  return fmt::format(R"(import torch
import triton


N = 24


@triton.jit
def smaller_of(a, b):
    return tl.minimum(a, b)


@triton.jit
def scale_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    # {0} rows
    tiles = triton.cdiv(batch_size, BLOCK)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < batch_size * 24) * (1 / batch_size), mask=i < 24 *)"
                     R"( batch_size)


@triton.jit
def other_kernel(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr, 1.5)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y=2):
        y = torch.empty((batch_size, 24), device=x.device)
        scale_kernel[(triton.cdiv(24 * batch_size, 64),)](
            x, y, BLOCK=64,
        )
        scale_kernel[(triton.cdiv(24 * batch_size, 64),)](y, y, BLOCK=64)
        other_kernel[(1,)](y, BLOCK=64)
        return y.as_strided((batch_size, 3), (24, 1), 24 * batch_size - 24).roll({1})
)",
                     batch, 2 * batch + 1);
}

std::array<WrittenFor, 3> written(const std::function<std::string(int64_t)>& code) {
  return {{{29, code(29)}, {37, code(37)}, {67, code(67)}}};
}

TEST(AnyBatchTest, KernelsAreGivenTheBatch) {
  const auto made = for_any_batch(written(module_for), "x");
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const char* text :
       {"def scale_kernel(batch_size: tl.tensor, x_ptr,", "def other_kernel(y_ptr,",
        "    tiles = tl.cdiv(batch_size, BLOCK)\n",
        "    def forward(self, x, y=2):\n        batch_size = x.shape[0]\n",
        "scale_kernel[(triton.cdiv(24 * batch_size, 64),)](batch_size, x, y, BLOCK=64)",
        "](batch_size, y, y, BLOCK=64)", "other_kernel[(1,)](y, BLOCK=64)", ".roll((2 * batch_size + 1))"})
    EXPECT_THAT(*made, HasSubstr(text));
}

TEST(AnyBatchTest, WhatElseDependsOnTheBatchIsRefused) {
  const auto refused = [](const std::string& from, const std::function<std::string(int64_t)>& to) {
    const auto made = for_any_batch(written([&](int64_t batch) {
                                      std::string code = module_for(batch);
                                      code.replace(code.find(from), from.size(), to(batch));
                                      return code;
                                    }),
                                    "x");
    return made.ok() ? "" : made.error().message;
  };
  const auto power = [](int64_t batch) { return batch <= 32 ? "32" : batch <= 64 ? "64" : "128"; };
  EXPECT_THAT(refused("BLOCK=64,", [&](int64_t b) { return fmt::format("BLOCK={},", power(b)); }),
              HasSubstr("is not a size of a tensor"));
  EXPECT_THAT(refused("N = 24", [](int64_t b) { return fmt::format("N = {}", b); }),
              HasSubstr("is not a size of a tensor"));
  EXPECT_THAT(refused("super().__init__()", [](int64_t b) { return fmt::format("self.n = {}", b); }),
              HasSubstr("is not a size of a tensor"));
  EXPECT_THAT(refused("1.5", [](int64_t b) { return fmt::format("{}", 1.0 / static_cast<double>(b)); }),
              HasSubstr("is not a size of a tensor"));
  EXPECT_THAT(
      refused("tl.store(y_ptr, 1.5)", [](int64_t b) { return b > 60 ? "pass" : "tl.store(y_ptr, 1.5)"; }),
      HasSubstr("other kernels"));
  EXPECT_THAT(refused("y=2", [](int64_t) { return "batch_size: int"; }), HasSubstr("a parameter of its own"));
}

TEST(AnyBatchTest, BatchesLieAroundPowersOfTwo) {
  EXPECT_THAT(batches_around(32, {}), testing::ElementsAre(31, 37, 67));
  EXPECT_THAT(batches_around(32, {31, 37}), testing::ElementsAre(29, 41, 67));
  EXPECT_THAT(batches_around(1, {}), testing::ElementsAre(7, 11, 17));
  EXPECT_THAT(batches_around(100, {64, 127}), testing::ElementsAre(113, 131, 257));
}

TEST(AnyBatchTest, ATaskHasOtherRows) {
  const std::string text = with_batch("def get_inputs(): return []\n", 32, 7);
  EXPECT_THAT(text, testing::StartsWith("def get_inputs(): return []\n"));
  EXPECT_THAT(text, HasSubstr("x[torch.arange(7) % 32] if x.dim() > 0 and x.shape[0] == 32 else x"));
}

}  // namespace
}  // namespace nereid::compiler
