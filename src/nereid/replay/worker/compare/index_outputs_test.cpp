#include "nereid/replay/worker/compare/index_outputs.h"

#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

// top-k of each row: [3, 6] to [3, k], as int64.
struct TopK {
  IndexMaker maker{.step = 0, .operand = 0, .result = 1, .dim = -1, .largest = true};
  trace::Trace trace;
  at::Tensor values =
      at::tensor({5, 3, 5, 1, 2, 0, 1, 1, 1, 1, 1, 1, 9, 8, 7, 6, 5, 4}, at::kDouble).view({3, 6});

  explicit TopK(int64_t k) {
    trace.values = {{.storage = 0, .dtype = trace::DType::kF32, .sizes = {3, 6}, .strides = {6, 1}},
                    {.storage = 1, .dtype = trace::DType::kI64, .sizes = {3, k}, .strides = {k, 1}}};
  }
  Places places() const { return Places({maker, {}}, trace, 1, values); }
  static at::Tensor flat(std::vector<int64_t> numbers) { return at::tensor(numbers, at::kLong); }
};

int64_t count(const at::Tensor& mask) { return mask.sum().item().toLong(); }

TEST(IndexOutputsTest, AnyOfEqualValuesIsRight) {
  const auto places = TopK(2).places();
  const auto want = TopK::flat({0, 2, 0, 1, 0, 1});
  EXPECT_EQ(count(places.wrong(want, want, false)), 0);
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 0, 5, 3, 0, 1}), want, false)), 0);
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 1, 5, 3, 0, 1}), want, false)), 1) << "a smaller value";
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 2, 5, 3, 0, 1}), want, false)), 1) << "the same place twice";
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 0, 6, -1, 0, 1}), want, false)), 2) << "outside";
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 0, 5, 3, 1, 0}), want, false)), 2) << "another order";
}

TEST(IndexOutputsTest, TheReferencesOwnErrorIsForgiven) {
  TopK top(1);
  auto places = top.places();
  const auto want = TopK::flat({0, 0, 0});
  places.widen(top.values, 4, 0x1p-23);
  EXPECT_EQ(count(places.wrong(TopK::flat({0, 0, 1}), want, false)), 1);
  auto own = top.values.clone();
  own[2][4] += 0.3;
  places.widen(own, 4, 0x1p-23);
  EXPECT_EQ(count(places.wrong(TopK::flat({0, 0, 1}), want, false)), 0);
  EXPECT_EQ(count(places.wrong(TopK::flat({0, 0, 3}), want, false)), 1);
}

TEST(IndexOutputsTest, AStableSortSaysWhichOfEqualsIsFirst) {
  TopK top(2);
  top.maker.stable = true;
  const auto places = top.places();
  const auto want = TopK::flat({0, 2, 0, 1, 0, 1});
  EXPECT_EQ(count(places.wrong(TopK::flat({2, 0, 0, 1, 0, 1}), want, false)), 2);
}

TEST(IndexOutputsTest, OtherChoicesAreAmongEquals) {
  TopK top(2);
  EXPECT_TRUE(has_ties(top.maker, top.values));
  EXPECT_FALSE(has_ties(top.maker, top.values.narrow(0, 2, 1)));
  auto maker = top.maker;
  maker.one = true;
  const auto result = at::zeros({3}, at::kLong);
  auto generator = at::Generator();
  const auto second = other_choice(maker, top.values, result, 1, generator);
  EXPECT_EQ(second[0].item().toLong(), 2);
  EXPECT_EQ(second[1].item().toLong(), 1);
  EXPECT_EQ(second[2].item().toLong(), 0);
}

TEST(IndexOutputsTest, NumbersThatRoundingMakesEqualAreChosenByTheirOrder) {
  constexpr double kUlp = 0x1p-23;
  IndexMaker maker{.step = 0, .operand = 0, .result = 1, .dim = -1, .one = true};
  const auto values =
      at::tensor({-0.5, -1 + kUlp, -1.0, -1 + 0.1 * kUlp, -0.9, 3.0, 2.0, 1.0, 4.0, 5.0}, at::kDouble)
          .view({2, 5});
  const auto least = at::tensor({2, 2}, at::kLong);
  EXPECT_TRUE(has_near_ties(maker, values, 0.25 * kUlp));
  EXPECT_FALSE(has_near_ties(maker, values.narrow(0, 1, 1), 0.25 * kUlp));
  const auto chosen = [&](double ulps, bool last) {
    const auto places = choice_within(maker, values, least, ulps * kUlp, last);
    return std::pair(places[0].item().toLong(), places[1].item().toLong());
  };
  EXPECT_EQ(chosen(0.05, false), (std::pair<int64_t, int64_t>(2, 2)));
  EXPECT_EQ(chosen(0.25, false), (std::pair<int64_t, int64_t>(2, 2)));
  EXPECT_EQ(chosen(0.25, true), (std::pair<int64_t, int64_t>(3, 2)));
  EXPECT_EQ(chosen(1, false), (std::pair<int64_t, int64_t>(1, 2)));
}

// max(x, 2) of three dimensions leaves two: the axis is one of the operand's alone.
TEST(IndexOutputsTest, OtherChoicesOfAResultWithoutTheAxis) {
  TopK top(2);
  auto maker = top.maker;
  maker.one = true, maker.dim = 2;
  const auto values = top.values.reshape({3, 1, -1});
  auto generator = at::Generator();
  EXPECT_TRUE(has_ties(maker, values));
  const auto second = other_choice(maker, values, at::zeros({3, 1}, at::kLong), 1, generator);
  EXPECT_EQ(second.sizes(), (at::IntArrayRef{3, 1}));
  EXPECT_EQ(second[0][0].item().toLong(), 2);
  EXPECT_EQ(second[1][0].item().toLong(), 1);
}

}  // namespace
}  // namespace nereid::replay
