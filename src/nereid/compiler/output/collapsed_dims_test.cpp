#include "nereid/compiler/output/collapsed_dims.h"

#include <gtest/gtest.h>

namespace nereid::compiler {
namespace {

std::string with_products(const std::string& text) {
  return with_collapsed_dims(text, {{189, "27 * 7"}, {256, "8 * 32"}});
}

TEST(CollapsedDims, AreWrittenInPlans) {
  EXPECT_EQ(with_products("#189 view(#12, [189, 7, 23]) [189, 7, 23]"),
            "#189 view(#12, [27 * 7, 7, 23]) [27 * 7, 7, 23]");
  EXPECT_EQ(with_products("over [189, 27] by [256]. rows=256, columns=189, warps=4"),
            "over [27 * 7, 27] by [8 * 32]. rows=256, columns=189, warps=4");
  EXPECT_EQ(with_products("strides 189 * 3, 1 from 189"), "strides 27 * 7 * 3, 1 from 27 * 7");
}

TEST(CollapsedDims, AreWrittenInCode) {
  EXPECT_EQ(with_products("i = torch.empty((189, 27), device=device)"),
            "i = torch.empty((27 * 7, 27), device=device)");
  EXPECT_EQ(with_products("mask=i < 189 * 27, other=0)"), "mask=i < 27 * 7 * 27, other=0)");
  EXPECT_EQ(with_products("i // 189 + i % 189 - 189 * 2"), "i // (27 * 7) + i % (27 * 7) - (27 * 7) * 2");
  EXPECT_EQ(with_products("(i // (189 * 3)) * (189 * 3)"), "(i // (27 * 7 * 3)) * (27 * 7 * 3)");
  EXPECT_EQ(with_products("x * (1 / 189) * (1 / 189 ** 0.5)"), "x * (1 / (27 * 7)) * (1 / (27 * 7) ** 0.5)");
  EXPECT_EQ(with_products("x.view(189, 23) == 189"), "x.view(27 * 7, 23) == 27 * 7");
}

TEST(CollapsedDims, BlocksNamesAndTextStay) {
  for (const char* text : {"k[(triton.cdiv(n, 256),)](x, BLOCK=256)", "tl.arange(0, 256)",
                           "x189 + 1.189 + 189.0 + 0x189", "# over 189", "\"189\" + \"\"\"\n189\n\"\"\""})
    EXPECT_EQ(with_products(text), text);
}

}  // namespace
}  // namespace nereid::compiler
