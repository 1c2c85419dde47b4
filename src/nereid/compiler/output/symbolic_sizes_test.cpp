#include "nereid/compiler/output/symbolic_sizes.h"

#include <gtest/gtest.h>

namespace nereid::compiler {
namespace {

const std::vector<Extents> kShapes = {{4, 5, 96, 1}, {3, 512}, {640}};

std::string symbolic_sizes(const std::string& text, const std::vector<Extents>& shapes,
                           const std::string& source) {
  const auto known = numbers_in(source);
  return SymbolicSizes(shapes, known).rewrite(text);
}

std::string symbolic(const std::string& text, const std::string& source = "") {
  return symbolic_sizes(text, kShapes, source);
}

TEST(SymbolicSizesTest, ProductsOfNeighbours) {
  EXPECT_EQ(symbolic("mask=i < 480, other=0"), "mask=i < 5 * 96, other=0");
  EXPECT_EQ(symbolic("x_ptr + (row // 480) * 480 + i"), "x_ptr + (row // (5 * 96)) * (5 * 96) + i");
  EXPECT_EQ(symbolic("i - 480"), "i - (5 * 96)");
  EXPECT_EQ(symbolic("range(0, 1920, BLOCK)"), "range(0, 4 * 5 * 96, BLOCK)");
  EXPECT_EQ(symbolic("i < 4 * 512 + 3"), "i < 4 * 512 + 3");
}

TEST(SymbolicSizesTest, WhatStaysAsItIs) {
  for (const char* text : {"p + 19", "i < 640", "i * 96", "i + 8", "i < 11", "BLOCK=512", "x1536 + 7",
                           "a.b1920", "\"480\" # 480", "'''480'''", "0x480", "x * 0.07"})
    EXPECT_EQ(symbolic(text), text);
}

TEST(SymbolicSizesTest, PowersOfTwoUnlessTheyAreBlocks) {
  const std::vector<Extents> shapes = {{16, 32}};
  const auto symbolic = [&](const std::string& text) { return symbolic_sizes(text, shapes, ""); };
  EXPECT_EQ(symbolic("i // 512"), "i // (16 * 32)");
  EXPECT_EQ(symbolic("i == 512"), "i == 16 * 32");
  EXPECT_EQ(symbolic("k[(triton.cdiv(512, 512),)](x, BLOCK=512, num_warps=4)"),
            "k[(triton.cdiv(16 * 32, 512),)](x, BLOCK=512, num_warps=4)");
  EXPECT_EQ(symbolic("x.as_strided((2, 32), (512, 1), 512)"), "x.as_strided((2, 32), (16 * 32, 1), 16 * 32)");
}

TEST(SymbolicSizesTest, NearASize) {
  EXPECT_EQ(symbolic("x_ptr - i + 639"), "x_ptr - i + (640 - 1)");
  EXPECT_EQ(symbolic("i < 479"), "i < 5 * 96 - 1");
  EXPECT_EQ(symbolic("i < 97"), "i < 96 + 1");
  EXPECT_EQ(symbolic("i * 97"), "i * (96 + 1)");
  EXPECT_EQ(symbolic("p + 482"), "p + (5 * 96 + 2)");
  EXPECT_EQ(symbolic("p + 482", "x[482:]"), "p + 482");
}

TEST(SymbolicSizesTest, LastElementsGatesAndSmallFactors) {
  EXPECT_EQ(symbolic("p + 384 - i"), "p + ((5 - 1) * 96) - i");
  EXPECT_EQ(symbolic("p - i + 1024"), "p - i + ((3 - 1) * 512)");
  EXPECT_EQ(symbolic("p + 192"), "p + 2 * 96");
  EXPECT_EQ(symbolic_sizes("i // 6 + 6 < 6", {{2, 3}}, ""), "i // (2 * 3) + 6 < 2 * 3");
}

TEST(SymbolicSizesTest, AddressesByThePointersOwnSizes) {
  const std::set<std::string> known = {"16"};
  const SymbolicSizes sizes({{12, 50, 3}, {256, 36}}, known, nullptr,
                            {{"x_ptr", {12, 50, 1, 6}}, {"y_ptr", {7, 16, 16}}});
  const auto address = [&](const std::string& text) {
    return sizes.rewrite("a = tl.load(" + text + ", mask=i < 1800, other=0)");
  };
  const auto is = [](const std::string& text) {
    return "a = tl.load(" + text + ", mask=i < 12 * 50 * 3, other=0)";
  };
  // A slice's offset, then a flip's, and both.
  EXPECT_EQ(address("x_ptr + (i // 3) * 6 + i % 3 + 15"), is("x_ptr + (i // 3) * 6 + i % 3 + (2 * 6 + 3)"));
  EXPECT_EQ(address("x_ptr + (i // 3) * 6 - i + 294"), is("x_ptr + (i // 3) * 6 - i + ((50 - 1) * 6)"));
  EXPECT_EQ(address("x_ptr + i * 300 - i + 297"), is("x_ptr + i * (50 * 6) - i + ((50 - 1) * 6 + 3)"));
  EXPECT_EQ(address("x_ptr + i * 300 + 294"), is("x_ptr + i * (50 * 6) + (49 * 6)"));
  EXPECT_EQ(address("x_ptr + -(i // 6) * 6 + 294"), is("x_ptr + -(i // 6) * 6 + ((50 - 1) * 6)"));
  EXPECT_EQ(address("x_ptr + i + 300"), is("x_ptr + i + (50 * 6)"));
  EXPECT_EQ(address("x_ptr + i + 3"), is("x_ptr + i + 3"));
  EXPECT_EQ(address("x_ptr + (i // 36) * 36 - (i % 36) + 35"),
            is("x_ptr + (i // 36) * (6 * 6) - (i % 36) + (5 * 6 + (6 - 1))"));
  EXPECT_EQ(SymbolicSizes({{64}}, known, nullptr, {{"x_ptr", {20}}}).rewrite("tl.load(x_ptr - i + 19)"),
            "tl.load(x_ptr - i + (20 - 1))");
  EXPECT_EQ(address("x_ptr + i + 6"), is("x_ptr + i + 6"));
  // By its own sizes, though 256 is one of another.
  EXPECT_EQ(address("y_ptr + i * 256 + (i % 4) * 32 + 17"),
            is("y_ptr + i * (16 * 16) + (i % 4) * (2 * 16) + (16 + 1)"));
  EXPECT_EQ(address("z_ptr + i * 256 + 11"), is("z_ptr + i * 256 + 11"));
  EXPECT_EQ(sizes.rewrite("tl.store(x_ptr + i * 300 + 15, y + 15)"),
            "tl.store(x_ptr + i * (50 * 6) + (2 * 6 + 3), y + 15)");
  // What is cut on its way is no offset.
  EXPECT_EQ(address("x_ptr + ((i + 15) // 11) * 6"), is("x_ptr + ((i + 15) // 11) * 6"));
}

TEST(SymbolicSizesTest, ElementsOfAWhole) {
  EXPECT_EQ(element_text({7, 24, 1, 16}, 2 * 24 * 16 + 5), "2 * 24 * 16 + 5");
  EXPECT_EQ(element_text({7, 24, 16}, 24 * 16 + 16), "24 * 16 + 16");
  EXPECT_EQ(element_text({7, 24, 16}, 23 * 16 + 15, true), "(24 - 1) * 16 + (16 - 1)");
  EXPECT_EQ(element_text({7, 24, 16}, 0), "");
}

TEST(SymbolicSizesTest, OfAnotherShape) {
  const std::vector<Extents> shapes = {{256}}, elsewhere = {{7, 99, 31}};
  const std::set<std::string> known;
  const SymbolicSizes sizes(shapes, known, &elsewhere);
  EXPECT_EQ(sizes.rewrite("x * 4.654843364520784e-05"), "x * (1 / (7 * 99 * 31))");
  EXPECT_EQ(sizes.rewrite("x * 0.006822641251392883"), "x * (1 / (7 * 99 * 31) ** 0.5)");
  EXPECT_EQ(sizes.rewrite("x * 1.0000465506005027"), "x * (7 * 99 * 31 / (7 * 99 * 31 - 1))");
  EXPECT_EQ(sizes.rewrite("x * 4.6550600502746487e-05"), "x * (1 / (7 * 99 * 31 - 1))");
  EXPECT_EQ(sizes.rewrite("x * 0.003 + 21483"), "x * 0.003 + 21483");
}

TEST(SymbolicSizesTest, ReciprocalsAndRoots) {
  EXPECT_EQ(symbolic("x * 0.0006510416666666666"), "x * (1 / (3 * 512))");
  EXPECT_EQ(symbolic("x * 0.0015625"), "x * (1 / 640)");
  EXPECT_EQ(symbolic("x * 0.1111111111111111"), "x * (1 / 9)");
  EXPECT_EQ(symbolic("x * 0.10206207261596577"), "x * (1 / 96 ** 0.5)");
  EXPECT_EQ(symbolic("x / 1536.0 / 640.0"), "x / (3 * 512) / 640.0");
  EXPECT_EQ(symbolic("x * 0.001953125 * 0.5 * 0.0625"), "x * (1 / 512) * 0.5 * 0.0625");
  EXPECT_EQ(symbolic("x * 0.044194173824159216 * 0.5"), "x * (1 / 512 ** 0.5) * 0.5");
  EXPECT_EQ(symbolic("x * 1.0006514657980456"), "x * (3 * 512 / (3 * 512 - 1))");
  EXPECT_EQ(symbolic("x * 0.0006514657980456026"), "x * (1 / (3 * 512 - 1))");
  EXPECT_EQ(symbolic("x + 1e-05"), "x + 1e-05");
  EXPECT_EQ(symbolic("x * 0.2", "leaky_relu(x, 0.2)"), "x * 0.2");
}

}  // namespace
}  // namespace nereid::compiler
