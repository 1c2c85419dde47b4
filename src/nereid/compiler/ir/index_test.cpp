#include "nereid/compiler/ir/index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace nereid::compiler {

void PrintTo(const Index& index, std::ostream* out) {
  *out << to_string(index, [](int dimension) { return fmt::format("d{}", dimension); });
}

namespace {

Index d(int dimension) { return Index::dimension(dimension); }

std::string text(const Index& index) {
  return to_string(index, [](int dimension) { return std::string(1, static_cast<char>('i' + dimension)); });
}

TEST(Index, AReshapeAndBackIsNothing) {
  const Extents extents{4, 3, 5};
  const Index linear = d(0) * 15 + d(1) * 5 + d(2);
  EXPECT_EQ(unravel(linear, {4, 3, 5}, extents), (std::vector<Index>{d(0), d(1), d(2)}));
  EXPECT_EQ(unravel(linear, {12, 5}, extents), (std::vector<Index>{d(0) * 3 + d(1), d(2)}));
  const auto flat = unravel(d(0), {4, 3, 5}, {60});
  EXPECT_EQ(flat[0] * 15 + flat[1] * 5 + flat[2], d(0));
}

TEST(Index, ReadsAsPython) {
  const Extents extents{100, 8};
  EXPECT_EQ(text(quotient(d(0), 7, extents)), "i // 7");
  EXPECT_EQ(text(remainder(d(0), 7, extents) * 3 + d(1)), "j + (i % 7) * 3");
  EXPECT_EQ(text(remainder(d(0) + d(1), 7, extents)), "(i + j) % 7");
  EXPECT_EQ(text(d(0) * 2 - d(1) - Index(4)), "i * 2 - j - 4");
  EXPECT_EQ(text(Index()), "0");
}

TEST(Index, WhatMayBeNegativeIsDividedFromHigherUp) {
  const Extents extents{10, 8};
  const auto name = [](int dimension) { return std::string(1, static_cast<char>('i' + dimension)); };
  EXPECT_EQ(to_string(quotient(d(1) - d(0), 3, extents), name, extents), "-i + ((i * 2 + j) // 3)");
  EXPECT_EQ(to_string(remainder(d(1) - d(0), 3, extents), name, extents), "(i * 2 + j) % 3");
}

TEST(Index, WhatLeaves32BitsIsWide) {
  const auto name = [](int dimension) { return std::string(1, static_cast<char>('i' + dimension)); };
  const auto written = [&](const Index& index, const Extents& extents, int wide = -1) {
    return to_string(index, name, extents, false, [&](int dimension) { return dimension != wide; });
  };
  const Extents small{1 << 20, 2048}, large{1 << 20, 2049};
  EXPECT_EQ(written(d(0) * 2047 + d(1), small), "i * 2047 + j");
  // A product, and a sum of what fits.
  EXPECT_EQ(written(d(0) * 2048 + d(1), small), "i.to(tl.int64) * 2048 + j");
  EXPECT_EQ(written(d(0) * 2047 + d(1) * 1024, large), "i.to(tl.int64) * 2047 + j * 1024");
  EXPECT_EQ(written(d(0) * 2048 + d(1), small, 0), "i * 2048 + j");
  // Inside of what fits.
  const Index inner = remainder(d(0) * 3000 + d(1), 7001, small);
  EXPECT_EQ(written(inner, small), "(i.to(tl.int64) * 3000 + j) % 7001");
  EXPECT_EQ(written(quotient(d(0), 3, small) * 7000, small), "(i // 3).to(tl.int64) * 7000");
}

TEST(Index, ThreeDigitsOfANumberAreTheNumber) {
  const Extents extents{2000};
  const Index x = d(0);
  const Index inner = remainder(x, 49, extents);
  EXPECT_EQ(quotient(x, 49, extents) * 49 + quotient(inner, 7, extents) * 7 + remainder(x, 7, extents), x);
  EXPECT_EQ(quotient(inner, 7, extents) * 14 + remainder(x, 7, extents) * 2, inner * 2);
}

TEST(Index, TheLastDigitsOfANumberAreItsRemainder) {
  const Extents extents{2000};
  const Index x = d(0), middle = remainder(quotient(x, 5, extents), 7, extents);
  EXPECT_EQ(middle * 10 + remainder(x, 5, extents) * 2, remainder(x, 35, extents) * 2);
  // The first digit counted from its end.
  EXPECT_EQ(text(quotient(x, 35, extents) * -35 + middle * 5 + remainder(x, 5, extents)),
            "-(i // 35) * 35 + (i % 35)");
}

TEST(Index, WhatTheExtentsSayIsUsed) {
  const Extents extents{6, 4};
  EXPECT_EQ(quotient(d(0) * 4 + d(1), 4, extents), d(0));
  EXPECT_EQ(remainder(d(0) * 4 + d(1), 4, extents), d(1));
  EXPECT_EQ(quotient(d(0) * 4 + d(1), 8, extents), quotient(d(0), 2, extents));
  EXPECT_EQ(quotient(quotient(d(0), 2, extents), 2, extents), quotient(d(0), 4, extents));
  EXPECT_EQ(quotient(d(0), 6, extents), Index());
  EXPECT_EQ(d(1).stride(1), 1);
  EXPECT_EQ((d(0) * 4 + d(1)).stride(0), 4);
  EXPECT_EQ(remainder(d(0), 4, extents).stride(0), std::nullopt);
}

// Random indices, built twice: as they are evaluated step by step, and in normal form.
class Pair {
 public:
  Pair(std::mt19937& random, const Extents& extents, const std::vector<std::vector<int64_t>>& points)
      : random_(random), extents_(extents), points_(points) {}

  std::pair<Index, std::vector<int64_t>> draw(int depth) {
    if (depth == 0) {
      const int dimension = static_cast<int>(random_() % extents_.size());
      std::vector<int64_t> values;
      for (const auto& point : points_) values.push_back(point[static_cast<size_t>(dimension)]);
      return {d(dimension), values};
    }
    auto [index, values] = draw(depth - 1);
    const int64_t by = 1 + static_cast<int64_t>(random_() % 9);
    switch (random_() % 5) {
      case 0: {
        for (auto& value : values) value = value / by - (value % by < 0 ? 1 : 0);
        return {quotient(index, by, extents_), values};
      }
      case 1: {
        for (auto& value : values) value = (value % by + by) % by;
        return {remainder(index, by, extents_), values};
      }
      case 2: {
        for (auto& value : values) value = value * (by - 4) + 7;
        return {index * (by - 4) + Index(7), values};
      }
      default: {
        const auto [other, others] = draw(depth - 1);
        for (size_t i = 0; i < values.size(); ++i) values[i] += by * others[i];
        return {index + other * by, values};
      }
    }
  }

 private:
  std::mt19937& random_;
  const Extents& extents_;
  const std::vector<std::vector<int64_t>>& points_;
};

TEST(Index, TheNormalFormHasTheSameValues) {
  std::mt19937 random(1);
  const Extents extents{3, 4, 6};
  std::vector<std::vector<int64_t>> points;
  for (int64_t i = 0; i < 72; ++i) points.push_back({i / 24, i / 6 % 4, i % 6});
  Pair pairs(random, extents, points);
  for (int round = 0; round < 20000; ++round) {
    const auto [index, values] = pairs.draw(1 + round % 5);
    const Bounds bounds = index.bounds(extents);
    for (size_t i = 0; i < points.size(); ++i) {
      ASSERT_EQ(index.evaluate(points[i]), values[i]) << text(index);
      ASSERT_LE(bounds.low, values[i]);
      ASSERT_GE(bounds.high, values[i]);
    }
    // The same index in other dimensions: i becomes j % 3, j becomes j / 2, k becomes 5 - k.
    const Extents others{1, 8, 6};
    const std::vector<Index> by{remainder(d(1), 3, others), quotient(d(1), 2, others), Index(5) - d(2)};
    const Index moved = substitute(index, by, others);
    for (int64_t j = 0; j < 8; ++j)
      for (int64_t k = 0; k < 6; ++k)
        ASSERT_EQ(moved.evaluate({0, j, k}), index.evaluate({j % 3, j / 2, 5 - k})) << text(index);
  }
}

TEST(Index, RefinesWhereNeighboursMakeEachColumn) {
  EXPECT_TRUE(refines({7, 33, 2000}, {7, 66000}));
  EXPECT_TRUE(refines({2, 3}, {6}));
  EXPECT_FALSE(refines({6}, {2, 3}));
  EXPECT_FALSE(refines({4, 6}, {6, 4}));  // as many elements, in another order
  EXPECT_FALSE(refines({7, 33}, {7}));
}

}  // namespace
TEST(Index, KnowsThatItDividesASumOfQuotients) {
  const Extents extents{Size(64 * 16), Size(32)};
  const Index m = Index::dimension(0), k = Index::dimension(1);
  const Index windows = quotient(m, Size(64), extents) * Size(8) + remainder(m, Size(8), extents);
  EXPECT_FALSE((windows + k).divides_sums());
  EXPECT_FALSE(remainder(m + Index(Size(4)), Size(32), extents).divides_sums());
  EXPECT_TRUE(remainder(windows + Index(Size(4)), Size(32), extents).divides_sums());
  EXPECT_TRUE((remainder(windows + Index(Size(4)), Size(32), extents) * Size(96) + k).divides_sums());
}

}  // namespace nereid::compiler
