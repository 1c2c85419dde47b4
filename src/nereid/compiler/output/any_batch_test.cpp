#include "nereid/compiler/output/any_batch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

namespace nereid::compiler {
namespace {

using testing::HasSubstr;

// A module as it is written for a batch.
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
    tiles = triton.cdiv({0}, BLOCK)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < {0} * 24) / {0}.0, mask=i < {1})


@triton.jit
def other_kernel(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr, 1.5)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y=2):
        y = torch.empty(({0}, 24), device=x.device)
        scale_kernel[(triton.cdiv({1}, 64),)](
            x, y, BLOCK=64,
        )
        scale_kernel[(triton.cdiv({1}, 64),)](y, y, BLOCK=64)
        other_kernel[(1,)](y, BLOCK=64)
        return y.as_strided(({0}, 3), (24, 1), {2})
)",
                     batch, 24 * batch, 24 * batch - 24);
}

std::array<WrittenFor, 3> written(const std::function<std::string(int64_t)>& code) {
  return {{{29, code(29)}, {37, code(37)}, {67, code(67)}}};
}

TEST(AnyBatchTest, NumbersBecomeFunctionsOfTheBatch) {
  const auto made = for_any_batch(written(module_for), "x");
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const char* text :
       {"def scale_kernel(batch: tl.tensor, x_ptr,", "mask=i < batch * 24) / batch, mask=i < (24 * batch))",
        "def other_kernel(y_ptr,", "    tiles = tl.cdiv(batch, BLOCK)\n",
        "    def forward(self, x, y=2):\n        batch = x.shape[0]\n", "torch.empty((batch, 24)",
        "scale_kernel[(triton.cdiv((24 * batch), 64),)](batch, x, y, BLOCK=64)", "](batch, y, y, BLOCK=64)",
        "other_kernel[(1,)](y, BLOCK=64)", "as_strided((batch, 3), (24, 1), (24 * batch - 24))"})
    EXPECT_THAT(*made, HasSubstr(text));
}

TEST(AnyBatchTest, WhatDependsOnTheBatchOtherwiseIsRefused) {
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
              HasSubstr("no affine function"));
  EXPECT_THAT(refused("N = 24", [](int64_t b) { return fmt::format("N = {}", b); }),
              HasSubstr("outside of forward"));
  EXPECT_THAT(refused("super().__init__()", [](int64_t b) { return fmt::format("self.n = {}", b); }),
              HasSubstr("outside of forward"));
  EXPECT_THAT(refused("1.5", [](int64_t b) { return fmt::format("{}", 1.0 / static_cast<double>(b)); }),
              HasSubstr("no affine function"));
  EXPECT_THAT(
      refused("tl.store(y_ptr, 1.5)", [](int64_t b) { return b > 60 ? "pass" : "tl.store(y_ptr, 1.5)"; }),
      HasSubstr("other kernels"));
  EXPECT_THAT(refused("N = 24", [](int64_t) { return "batch = 24"; }), HasSubstr("`batch` is used already"));
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
