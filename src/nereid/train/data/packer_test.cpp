#include "nereid/train/data/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace nereid::train {
namespace {

std::vector<uint32_t> lengths_like(double median, double spread, uint32_t longest, int count) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> draw(std::log(median), spread);
  std::vector<uint32_t> lengths(static_cast<size_t>(count));
  for (auto& length : lengths) length = static_cast<uint32_t>(std::clamp(draw(random), 1.0, longest + 0.5));
  return lengths;
}

std::vector<Row> first_rows(Packer packer, int count) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) rows.push_back(packer.next());
  return rows;
}

TEST(Permutation, IsOneForEverySizeAndAnotherForEachKey) {
  for (uint64_t size = 1; size < 200; ++size) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(permuted(i, size, 9));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += permuted(i, 1000, 1) == permuted(i, 1000, 2);
  EXPECT_LT(same, 10);  // one is expected
  EXPECT_LT(permuted((uint64_t{1} << 40) - 1, uint64_t{1} << 40, 3), uint64_t{1} << 40);
}

// Where a document goes is uniform: each of 24 orders of 4 as often.
TEST(Permutation, GivesEveryOrderAlike) {
  std::map<std::vector<uint64_t>, int> counts;
  constexpr int kDraws = 24'000;
  for (uint64_t key = 0; key < kDraws; ++key) {
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 4; ++i) order.push_back(permuted(i, 4, key * 77));
    ++counts[order];
  }
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts)
    chi_square += std::pow(count - kDraws / 24.0, 2) / (kDraws / 24.0);
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom, 0.1 %
}

TEST(Packer, EveryEpochHasEveryDocumentOnceAndNoRowIsTooLong) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const auto lengths = lengths_like(30, 1, 100, 1 + static_cast<int>(random() % 300));
    const PackingSettings settings{
        .row_length = 100, .window = 1 + static_cast<int64_t>(random() % 80), .seed = random()};
    Packer packer = Packer::create(lengths, settings).value();
    std::vector<std::vector<uint64_t>> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::multiset<uint64_t> seen;
      std::vector<uint64_t> order;
      while (seen.size() < lengths.size()) {
        const Row& row = packer.next();
        EXPECT_EQ(packer.place().epoch, epoch);
        uint32_t tokens = 0;
        for (const uint64_t document : row)
          tokens += lengths[document], seen.insert(document), order.push_back(document);
        EXPECT_LE(tokens, 100u);
        EXPECT_GT(tokens, 0u);
      }
      for (uint64_t d = 0; d < lengths.size(); ++d) EXPECT_EQ(seen.count(d), 1u);
      orders.push_back(order);
    }
    if (lengths.size() > 20) {
      EXPECT_NE(orders[0], orders[1]);
    }
  }
}

TEST(Packer, GoesOnFromEveryPlace) {
  const auto lengths = lengths_like(30, 1, 100, 70);
  const PackingSettings settings{.row_length = 100, .window = 16, .seed = 5};
  Packer whole = Packer::create(lengths, settings).value();
  std::vector<Place> places{whole.place()};
  std::vector<Row> rows;
  for (int i = 0; i < 90; ++i) {
    rows.push_back(whole.next());
    places.push_back(whole.place());
  }
  EXPECT_GE(places.back().epoch, 2);
  for (size_t i = 0; i + 3 < rows.size(); ++i)
    EXPECT_THAT(first_rows(Packer::create(lengths, settings, places[i]).value(), 3),
                testing::ElementsAre(rows[i], rows[i + 1], rows[i + 2]));
}

TEST(Packer, DependsOnTheSeed) {
  const auto lengths = lengths_like(30, 1, 100, 70);
  const auto rows = [&](uint64_t seed) {
    return first_rows(Packer::create(lengths, {.row_length = 100, .window = 16, .seed = seed}).value(), 20);
  };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
}

TEST(Packer, LeavesLittleRoom) {
  const auto lengths = lengths_like(700, 0.8, 4096, 20'000);
  Packer packer = Packer::create(lengths, {.row_length = 4096, .window = 4096, .seed = 1}).value();
  double tokens = 0, rows = 0;
  while (true) {
    const Row row = packer.next();
    if (packer.place().epoch > 0) break;
    for (const uint64_t document : row) tokens += lengths[document];
    rows += 4096;
  }
  EXPECT_GT(tokens / rows, 0.998);
}

TEST(Packer, RefusesWhatCannotBe) {
  EXPECT_EQ(Packer::create({0, 0}, {.row_length = 10}).error().message,
            "none of 2 documents is of use: none has an answer and fits a row of 10 tokens");
  EXPECT_EQ(Packer::create({3, 11}, {.row_length = 10}).error().message,
            "document 1 has 11 tokens, a row 10");
  EXPECT_EQ(Packer::create({3}, {.row_length = 10}, {.window = 1}).error().message,
            "expected a window below 1, got epoch 0, window 1, row 0");
  EXPECT_EQ(Packer::create({3}, {.row_length = 10}, {.row = 5}).error().message,
            "expected at most 1 rows in window 0 of epoch 0, got row 5");
}

}  // namespace
}  // namespace nereid::train
