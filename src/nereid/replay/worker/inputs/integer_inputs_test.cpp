#include "nereid/replay/worker/inputs/integer_inputs.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "nereid/replay/worker/inputs/integer_helpers.h"
#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr InputDistribution kKinds[] = {InputDistribution::kLowest, InputDistribution::kHighest,
                                        InputDistribution::kRedrawn};

at::Tensor of(const std::vector<int64_t>& numbers) {
  return at::from_blob(const_cast<int64_t*>(numbers.data()), {static_cast<int64_t>(numbers.size())},
                       at::kLong)
      .clone();
}
bool all(const at::Tensor& truths) { return truths.all().item().toBool(); }
int64_t number(const at::Tensor& t) { return t.item().toLong(); }

class IntegerInputs : public testing::Test {
 protected:
  bool redraw(at::Tensor t, InputDistribution kind, IntegerUse use = {}, std::vector<int64_t> sizes = {}) {
    return redraw_integers(std::move(t), kind, use, {.sizes = std::move(sizes), .numbers = {}}, generator_);
  }
  at::Generator generator_ = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
};

TEST_F(IntegerInputs, IndicesFillWhatTheyIndex) {
  for (const auto kind : kKinds) {
    auto ids = at::randint(0, 10, {40, 50}, at::kLong);
    ASSERT_TRUE(redraw(ids, kind, {.bound = 1000}));
    EXPECT_GE(number(ids.min()), 0);
    EXPECT_LT(number(ids.max()), 1000);
    EXPECT_EQ(number(ids.min()) == 999, kind == InputDistribution::kHighest);
    EXPECT_EQ(number(ids.max()) > 900, kind != InputDistribution::kLowest);
    auto computed = at::randint(0, 10, {40, 50}, at::kLong);
    ASSERT_TRUE(redraw(computed, kind, {.bound = 1000, .obscure = true}));
    EXPECT_LT(number(computed.max()), 10) << "only the sample's range is safe";
  }
}

TEST_F(IntegerInputs, MasksAndFlags) {
  auto mask = at::ones({8, 8}, at::kBool);
  EXPECT_FALSE(redraw(mask, InputDistribution::kHighest)) << "all true it is already";
  EXPECT_TRUE(redraw(mask, InputDistribution::kRedrawn));
  EXPECT_GT(number(mask.sum()), 8);
  EXPECT_LT(number(mask.sum()), 56);
  EXPECT_TRUE(redraw(mask, InputDistribution::kLowest));
  EXPECT_EQ(number(mask.sum()), 0);
  auto flag = at::ones({}, at::kBool);
  EXPECT_TRUE(redraw(flag, InputDistribution::kRedrawn));
  EXPECT_FALSE(flag.item().toBool());
  auto padding = at::ones({4, 16}, at::kLong);  // an attention mask of integers
  EXPECT_TRUE(redraw(padding, InputDistribution::kRedrawn));
  EXPECT_GT(number(padding.sum()), 10);
  EXPECT_LT(number(padding.sum()), 54);
  auto one = at::ones({1}, at::kLong);
  EXPECT_TRUE(redraw(one, InputDistribution::kRedrawn));
  EXPECT_EQ(number(one), 0);
}

TEST_F(IntegerInputs, LengthsReachFromNothingToTheRowThatTheyAreComparedWith) {
  const IntegerUse lengths_of_64{.positions = 64};
  for (const bool descending : {false, true})
    for (const auto kind : kKinds) {
      auto lengths = at::randint(1, 50, {200}, at::kLong);
      if (descending) lengths = std::get<0>(lengths.sort(0, true));
      ASSERT_TRUE(redraw(lengths, kind, lengths_of_64));
      EXPECT_EQ(number(lengths.min()), kind == InputDistribution::kHighest ? 64 : 0);
      EXPECT_EQ(number(lengths.max()), kind == InputDistribution::kLowest ? 0 : 64);
      EXPECT_TRUE(!descending || all(lengths.diff().le(0)));
    }
  auto divided = of({7, 9, 9, 8, 7});  // a mean's: a length of zero need not mean anything
  ASSERT_TRUE(redraw(divided, InputDistribution::kLowest, {.positions = 64, .compared_alone = false}));
  EXPECT_EQ(number(divided.max()), 1);
  auto last = of({7, 9, 9, 8, 7});  // x[lengths - 1]
  ASSERT_TRUE(redraw(last, InputDistribution::kLowest, {.least = 1, .bound = 65}));
  EXPECT_EQ(number(last.max()), 1);
  ASSERT_TRUE(redraw(last, InputDistribution::kHighest, {.least = 1, .bound = 65}));
  EXPECT_EQ(number(last.min()), 64);
  auto ends = of({10, 34, 40, 64});
  ASSERT_TRUE(redraw(ends, InputDistribution::kRedrawn, lengths_of_64, {64}));
  EXPECT_EQ(number(ends[3]), 64) << "of segments";
}

TEST_F(IntegerInputs, NoCountPassesTheRowThatCountsAreComparedWith) {
  const IntegerUse of_rows{.positions = 32, .compared_alone = false};
  for (const auto kind : kKinds) {
    auto lengths = of({10, 24, 30, 20}), offsets = of({0, 10, 34, 64, 84});
    redraw_together({{lengths, of_rows}, {offsets}}, kind, {.sizes = {84}}, generator_);
    EXPECT_LE(number(lengths.max()), 32);
    EXPECT_TRUE(lengths.cumsum(0).equal(offsets.slice(0, 1)));
  }
}

TEST_F(IntegerInputs, PositionsThatAreOnlyReadAtComeInAnyOrder) {
  const auto redrawn = [&](const IntegerUse& use) {
    auto positions = at::arange(64, at::kLong).expand({4, 64}).contiguous();
    return redraw(positions, InputDistribution::kRedrawn, use) ? positions : at::Tensor();
  };
  const auto read = redrawn({.bound = 64});
  ASSERT_TRUE(read.defined());
  EXPECT_FALSE(all(read.diff().gt(0)));
  EXPECT_LT(number(read.max()), 64);
  EXPECT_FALSE(redrawn({.bound = 64, .scattered = true}).defined()) << "rows may be in order on purpose";
  EXPECT_TRUE(redrawn({.compared_alone = false}).defined()) << "numbers that are computed with";
}

TEST_F(IntegerInputs, FullLengthsBecomeShorter) {
  auto lengths = at::full({16}, 128, at::kLong);
  EXPECT_TRUE(redraw(lengths, InputDistribution::kRedrawn));
  EXPECT_GE(number(lengths.min()), 1);
  EXPECT_LE(number(lengths.max()), 128);
  EXPECT_LT(number(lengths.min()), 100);
  auto obscure = at::full({16}, 128, at::kLong);
  EXPECT_FALSE(redraw(obscure, InputDistribution::kRedrawn, {.obscure = true}));
}

TEST_F(IntegerInputs, OffsetsStaySortedAndKeepTheirEndsAndFactors) {
  for (const auto kind : kKinds) {
    auto offsets = of({0, 32, 48, 112, 160, 256});
    const auto before = offsets.clone();
    ASSERT_TRUE(redraw(offsets, kind));
    EXPECT_TRUE(all(offsets.diff().gt(0))) << "no segment is empty in the sample";
    EXPECT_EQ(number(offsets[0]), 0);
    EXPECT_EQ(number(offsets[5]), 256);
    EXPECT_TRUE(all(offsets.remainder(16).eq(0)));
    EXPECT_FALSE(offsets.equal(before));
    auto segments = of({0, 0, 1, 1, 1, 3, 4, 4});
    ASSERT_TRUE(redraw(segments, kind));
    EXPECT_TRUE(all(segments.diff().ge(0)));
    auto falling = of({9, 7, 7, 4, 1});
    ASSERT_TRUE(redraw(falling, kind));
    EXPECT_TRUE(all(falling.diff().le(0)));
  }
}

TEST_F(IntegerInputs, PermutationsStayPermutations) {
  for (const auto kind : kKinds) {
    auto order = of({3, 0, 2, 5, 1, 4});
    ASSERT_TRUE(redraw(order, kind, {.bound = 100}));
    EXPECT_TRUE(std::get<0>(order.sort()).equal(at::arange(6, at::kLong)));
    auto table = of({11, 4, 9, 2, 7, 5}).reshape({2, 3});  // a block table: no block twice
    ASSERT_TRUE(redraw(table, kind, {.bound = 16}));
    EXPECT_TRUE(all(std::get<0>(table.reshape({-1}).sort()).diff().gt(0)));
    EXPECT_LT(number(table.max()), 16);
    auto positions = at::arange(6, at::kLong);
    EXPECT_FALSE(redraw(positions, kind)) << "there is one such run of numbers";
    EXPECT_EQ(redraw(positions, kind, {.bound = 64, .scattered = true}), kind != InputDistribution::kLowest);
    EXPECT_TRUE(all(positions.diff().gt(0)));
  }
}

TEST_F(IntegerInputs, CountsStillAddUp) {
  auto counts = of({30, 5, 60, 1, 17, 15});
  EXPECT_TRUE(redraw(counts, InputDistribution::kRedrawn, {}, {64, 128}));
  EXPECT_EQ(number(counts.sum()), 128);
  EXPECT_GE(number(counts.min()), 0);
}

TEST_F(IntegerInputs, OneCountHoldsNearlyEverything) {
  const auto sample = of({30, 5, 60, 1, 17, 15}), equal = of({32, 32, 32, 32});
  auto counts = sample.clone();
  EXPECT_FALSE(redraw(counts, InputDistribution::kLowest, {.bound = 200}, {64, 128})) << "it is an index";
  EXPECT_TRUE(redraw(counts, InputDistribution::kLowest, {}, {64, 128}));
  EXPECT_TRUE(counts.equal(of({1, 1, 1, 1, 1, 123})));
  counts = sample.clone();
  EXPECT_TRUE(redraw(counts, InputDistribution::kHighest, {}, {64, 128}));
  EXPECT_TRUE(counts.equal(of({127, 0, 0, 0, 0, 1})));
  counts = equal.clone();
  EXPECT_TRUE(redraw(counts, InputDistribution::kLowest, {}, {64, 128}));
  EXPECT_TRUE(counts.equal(of({1, 1, 1, 125})));
  counts = equal.clone();
  const IntegerLimits padded{.sizes = {128}, .numbers = {}, .shapes = {{4, 48, 8}, {128, 8}}};
  EXPECT_TRUE(redraw_together({{counts}}, InputDistribution::kHighest, padded, generator_));
  EXPECT_TRUE(counts.equal(of({48, 48, 31, 1})));
}

TEST_F(IntegerInputs, SegmentsOfOffsetsMayBeEmpty) {
  auto offsets = of({0, 30, 35, 95, 128});
  EXPECT_TRUE(redraw(offsets, InputDistribution::kHighest, {}, {128, 8}));
  EXPECT_TRUE(offsets.equal(of({0, 127, 127, 127, 128})));
  auto places = of({0, 30, 35, 95, 128});
  EXPECT_TRUE(redraw(places, InputDistribution::kHighest, {}, {64, 8}));
  EXPECT_TRUE(all(places.diff().gt(0))) << "they end at no size";
  auto lengths = of({16, 16, 16, 16}), ends = of({16, 32, 48, 64});
  EXPECT_TRUE(redraw_together({{lengths}, {ends}}, InputDistribution::kLowest, {.sizes = {64}}, generator_));
  EXPECT_TRUE(lengths.cumsum(0).equal(ends));
  EXPECT_EQ(number(lengths.max()), 61);
}

TEST_F(IntegerInputs, MarksStayWhereTheyAre) {
  for (const auto kind : kKinds) {
    auto labels = of({5, -100, 3, 3, -100, 9});
    ASSERT_TRUE(redraw(labels, kind, {.bound = 50}));
    EXPECT_EQ(number(labels[1]), -100);
    EXPECT_EQ(number(labels.eq(-100).sum()), 2);
    EXPECT_LT(number(labels.max()), 50);
  }
}

TEST_F(IntegerInputs, WhatFollowsFromAnotherIsSeen) {
  const auto counts = of({3, 1, 4, 2}), sums = of({3, 4, 8, 10}), offsets = of({0, 3, 4, 8, 10});
  EXPECT_TRUE(are_related(counts, sums));
  EXPECT_TRUE(are_related(counts, offsets));
  EXPECT_TRUE(are_related(of({0, 0, 0, 1, 2, 2, 2, 2, 3, 3}), counts)) << "their histogram";
  EXPECT_TRUE(are_related(of({2, 0, 3, 1}), of({1, 3, 0, 2}))) << "a permutation and its inverse";
  EXPECT_TRUE(are_related(of({1, 5, 9, 2}), of({4, 8, 12, 3}))) << "begins and ends";
  EXPECT_TRUE(are_related(counts, at::arange(5, at::kLong).lt(counts.unsqueeze(1))))
      << "lengths and their mask";
  EXPECT_FALSE(are_related(of({5, 5, 5, 6}), at::arange(1, 21, at::kLong).view({4, 5}))) << "no mask";
  EXPECT_FALSE(are_related(counts, of({9, 0, 1, 7})));
  EXPECT_FALSE(are_related(of({7, 8, 9, 3}), at::zeros({4}, at::kLong)));
}

TEST_F(IntegerInputs, MasksByDistance) {
  EXPECT_TRUE(is_banded(at::ones({1, 1, 6, 6}).tril()));
  EXPECT_TRUE(is_banded(at::ones({6, 8}, at::kBool).triu(1)));
  auto spoilt = at::ones({6, 6}).tril();
  spoilt[3][1].zero_();
  EXPECT_FALSE(is_banded(spoilt));
  EXPECT_FALSE(is_banded(at::arange(36).reshape({6, 6})));
}

TEST_F(IntegerInputs, WhatFollowsFromOthersFollowsStill) {
  for (const auto kind : kKinds)
    for (int round = 0; round < 20; ++round) {
      auto lengths = of({10, 24, 30}), offsets = of({0, 10, 34, 64}), ends = of({10, 34, 64});
      const auto before = lengths.clone();
      const bool any = redraw_together({{offsets}, {lengths}, {ends}}, kind,
                                       {.sizes = {64, 8}, .numbers = {}}, generator_);
      EXPECT_EQ(number(lengths.sum()), 64);
      EXPECT_TRUE(lengths.cumsum(0).equal(offsets.slice(0, 1)));
      EXPECT_TRUE(ends.equal(offsets.slice(0, 1)));
      EXPECT_EQ(any, !lengths.equal(before));
    }
  auto order = of({2, 0, 3, 1}), inverse = of({1, 3, 0, 2});
  EXPECT_TRUE(redraw_together({{order}, {inverse}}, InputDistribution::kHighest, {}, generator_));
  EXPECT_TRUE(order.argsort().equal(inverse));
  auto begins = of({1, 5, 9, 2}), apart = of({4, 8, 12, 3});
  EXPECT_FALSE(redraw_together({{begins}, {apart}}, InputDistribution::kRedrawn, {}, generator_))
      << "no rule gives the ends";
}

TEST_F(IntegerInputs, SomeRowsOfFlagsHoldOneAlone) {
  for (const auto type : {at::kBool, at::kLong}) {
    auto flags = at::rand({256, 32}).lt(0.5).to(type);
    ASSERT_TRUE(redraw(flags, InputDistribution::kRedrawn, {}));
    const auto set = flags.to(at::kLong).sum(1);
    EXPECT_GT(number(set.eq(1).sum()), 4);
    EXPECT_GT(number(set.eq(31).sum()), 4);
    EXPECT_GT(number(set.sub(16).abs().lt(8).sum()), 64);
  }
}

TEST_F(IntegerInputs, MarksThatTheForwardAsksForMove) {
  auto own = at::randint(0, 10, {8, 50}, at::kLong);
  own.narrow(1, 0, 20).fill_(-100);
  for (const auto kind : kKinds)
    for (const bool named : {false, true}) {
      auto labels = own.clone();
      EXPECT_TRUE(redraw(labels, kind,
                         {.bound = 1000, .marks = named ? std::set<int64_t>{-100} : std::set<int64_t>{}}));
      const bool moves = named && kind == InputDistribution::kRedrawn;
      EXPECT_EQ(labels.lt(0).equal(own.lt(0)), !moves);
      EXPECT_TRUE(all(labels.ge(0).logical_or(labels.eq(-100))));
      EXPECT_TRUE(labels.ge(0).any().item().toBool());
    }
  auto all_marks = at::full({4}, -100, at::kLong);
  EXPECT_FALSE(redraw(all_marks, InputDistribution::kRedrawn, {.marks = {-100}}));
}

TEST_F(IntegerInputs, LargeTensorsKeepTheStructureThatTheyHave) {
  constexpr int64_t kRows = 1100, kColumns = 4000;
  static_assert(kRows * kColumns > kMaxSearched);
  const auto ascending = at::rand({kRows, kColumns}).lt(0.0025).cumsum(1);  // rows of ten long runs
  const auto permutation = at::randperm(kRows * kColumns, at::kLong);
  for (const auto kind : kKinds) {
    auto ids = at::randint(0, 10, {kRows, kColumns}, at::kInt);
    ASSERT_TRUE(redraw(ids, kind, {.bound = 1000}));
    EXPECT_GE(number(ids.min()), 0);
    EXPECT_LT(number(ids.max()), 1000);
    EXPECT_EQ(number(ids.min()) == 999, kind == InputDistribution::kHighest);
    EXPECT_EQ(number(ids.max()) > 900, kind != InputDistribution::kLowest);
    auto marked = at::randint(0, 10, {kRows, kColumns}, at::kLong);
    marked[7][9] = -100;
    const auto before = marked.clone();
    EXPECT_FALSE(redraw(marked, kind, {.bound = 1000}));
    EXPECT_TRUE(marked.equal(before));
    if (kind != InputDistribution::kRedrawn && kind != InputDistribution::kHighest) continue;
    auto sorted = ascending.clone();
    redraw(sorted, kind, {.bound = 1000});
    EXPECT_TRUE(all(sorted.diff(1, 1).ge(0)));
    auto places = permutation.clone();
    redraw(places, kind, {.bound = kRows * kColumns});
    EXPECT_TRUE(all(at::bincount(places).eq(1))) << "each number once";
  }
  // Counts whose rows add up to a size.
  auto counts = at::ones({kRows, kColumns}, at::kLong);
  counts.slice(1, 0, kColumns, 2).zero_(), counts.slice(1, 1, kColumns, 4).fill_(2);
  counts.slice(1, 3, kColumns, 4).fill_(3);
  const auto sum = number(counts[0].sum());
  ASSERT_TRUE(redraw(counts, InputDistribution::kRedrawn, {}, {sum}));
  EXPECT_TRUE(all(counts.sum(1).eq(sum)));
}

TEST_F(IntegerInputs, NumbersThatAreComputedWithGetAnotherSignAndSize) {
  const auto flipped = InputDistribution::kFlipped;
  const IntegerUse computed{.compared_alone = false};
  auto numbers = at::randint(0, 100, {16, 64}, at::kLong);
  ASSERT_TRUE(redraw(numbers, flipped, computed));
  EXPECT_LT(number(numbers.min()), -100);
  EXPECT_GT(number(numbers.max()), 100);
  auto bytes = at::randint(0, 100, {16, 64}, at::kByte);
  ASSERT_TRUE(redraw(bytes, flipped, computed));
  EXPECT_GT(number(bytes.to(at::kLong).max()), 127);
  for (const IntegerUse& use : {IntegerUse{}, IntegerUse{.bound = 1000, .compared_alone = false},
                                IntegerUse{.obscure = true, .compared_alone = false},
                                IntegerUse{.compared_alone = false, .limited = true}}) {
    auto kept = at::randint(0, 100, {16, 64}, at::kLong);
    EXPECT_FALSE(redraw(kept, flipped, use));
  }
  auto sorted = at::arange(64, at::kLong), flags = at::randint(0, 2, {16, 64}, at::kLong);
  EXPECT_FALSE(redraw(sorted, flipped, computed));
  EXPECT_FALSE(redraw(flags, flipped, computed));
  auto codes = at::randint(-8, 8, {16, 64}, at::kChar);  // of four bits
  EXPECT_FALSE(redraw(codes, flipped, computed));
}

TEST_F(IntegerInputs, FarNumbersLeaveFewerBitsThanTheirType) {
  const auto far = InputDistribution::kFar;
  const IntegerUse computed{.compared_alone = false};
  auto numbers = at::randint(0, 100, {16, 64}, at::kInt);
  ASSERT_TRUE(redraw(numbers, far, computed));
  EXPECT_GE(number(numbers.abs().min()), int64_t{1} << 28);
  EXPECT_TRUE(numbers.sign().sum(1).abs().eq(64).all().item().toBool()) << "rows are of one sign";
  EXPECT_LT(number(numbers.min()), 0);
  auto wide = at::randint(0, 100, {16, 64}, at::kLong);
  ASSERT_TRUE(redraw(wide, far, computed));
  EXPECT_GT(number(wide.max()), int64_t{1} << 38);
  auto identifiers = at::randint(0, 100, {64}, at::kLong);
  ASSERT_TRUE(redraw(identifiers, far, IntegerUse{.compared_alone = false, .reduced = true}));
  EXPECT_GE(number(identifiers.min()), 0) << "remainders of negative numbers differ between languages";
  auto kept = at::randint(0, 100, {16, 64}, at::kInt);
  EXPECT_FALSE(redraw(kept, far, IntegerUse{.compared_alone = false, .multiplied = true}));
}

TEST_F(IntegerInputs, NoStepPassesTheLongest) {
  for (const auto kind : kKinds)
    for (int round = 0; round < 20; ++round) {
      auto offsets = of({0, 7, 19, 24, 40}), longest = of({16});
      redraw_together({{offsets}, {longest}}, kind, {}, generator_);
      EXPECT_EQ(number(longest), 16) << "it says how long the longest may be";
      EXPECT_EQ(number(offsets[0]), 0);
      EXPECT_EQ(number(offsets[4]), 40);
      EXPECT_TRUE(all(offsets.diff().ge(0)) && all(offsets.diff().le(16))) << offsets;
      auto given = of({0, 7, 19, 24, 40});
      EXPECT_TRUE(redraw_together({{given}}, kind, {.sizes = {}, .numbers = {20}}, generator_));
      EXPECT_TRUE(all(given.diff().le(20))) << given;
    }
}

TEST_F(IntegerInputs, WhatTheHostHasReadStays) {
  auto lengths = of({10, 24, 30}), offsets = of({0, 10, 34, 64});
  const std::vector<IntegerInput> inputs = {{lengths, {}, true}, {offsets}};
  EXPECT_FALSE(redraw_together(inputs, InputDistribution::kRedrawn, {.sizes = {64}}, generator_));
  EXPECT_TRUE(offsets.equal(of({0, 10, 34, 64})));
}

}  // namespace
}  // namespace nereid::replay
