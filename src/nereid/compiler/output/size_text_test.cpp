#include "nereid/compiler/output/size_text.h"

#include <gtest/gtest.h>

namespace nereid::compiler {
namespace {

TEST(SizeTextTest, ElementsOfAWhole) {
  EXPECT_EQ(element_text({7, 24, 1, 16}, 2 * 24 * 16 + 5), "2 * 24 * 16 + 5");
  EXPECT_EQ(element_text({7, 24, 16}, 24 * 16 + 16), "24 * 16 + 16");
  EXPECT_EQ(element_text({7, 24, 16}, 0), "0");
}

TEST(SizeTextTest, StridesAreProductsOfSizes) {
  EXPECT_EQ(strides_text({320, 1, 16}, {8, 20, 16}), "20 * 16, 1, 16");
  EXPECT_EQ(strides_text({320, 0, 32}, {8, 20, 16}), "20 * 16, 0, 2 * 16");
  EXPECT_EQ(strides_text({640, 80, 17}, {8, 20, 16}), "2 * 20 * 16, 5 * 16, 17");
  EXPECT_EQ(strides_text({12, 1}, {12, 3, 4}), "12, 1");  // a size of its own
}

}  // namespace
}  // namespace nereid::compiler
