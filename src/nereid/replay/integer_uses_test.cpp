#include "nereid/replay/integer_uses.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::replay {
namespace {

using namespace trace;

// A forward whose input is `i`, i64[8].
struct Task {
  Sketch s;
  ValueId i;
  Task() {
    s.phase(PhaseKind::kModule);
    s.phase(PhaseKind::kForward);
    i = s.tensor({8}, DType::kI64, Role::kInput);
  }
  ValueId call(const std::string& op, std::vector<Arg> args, std::vector<int64_t> sizes,
               DType type = DType::kF32) {
    const auto made = s.tensor(std::move(sizes), type);
    s.step(make_call(op, std::move(args), tensor_arg(made)));
    return made;
  }
  IntegerUse use() const { return use_of(s.trace, i); }
};

TEST(IntegerUses, TheSmallestDimensionThatIsIndexedBinds) {
  Task t;
  const auto table = t.s.tensor({100, 4}), other = t.s.tensor({7, 30});
  t.call("aten::embedding", {tensor_arg(table), tensor_arg(t.i)}, {8, 4});
  EXPECT_EQ(t.use().bound, 100);
  const auto narrow = t.call("aten::_to_copy", {tensor_arg(t.i)}, {8}, DType::kI32);
  t.call("aten::index_select", {tensor_arg(other), Arg{int64_t{-1}}, tensor_arg(narrow)}, {7, 8});
  EXPECT_EQ(t.use().bound, 30);
  EXPECT_FALSE(t.use().obscure);
}

TEST(IntegerUses, AnIndexThatIsComputedIsObscure) {
  Task t;
  const auto table = t.s.tensor({100, 4});
  const auto thrice = t.call("aten::mul.Tensor", {tensor_arg(t.i), Arg{int64_t{3}}}, {8}, DType::kI64);
  EXPECT_FALSE(t.use().obscure) << "nothing looks anything up yet";
  t.call("aten::index.Tensor", {tensor_arg(table), Arg{List{{tensor_arg(thrice)}, false}}}, {8, 4});
  EXPECT_TRUE(t.use().obscure);
  EXPECT_EQ(t.use().bound, IntegerUse::kNoBound);
}

TEST(IntegerUses, WhatSaysWhereToReadAloneGathers) {
  Task t;
  const auto table = t.s.tensor({100, 4});
  t.call("aten::embedding", {tensor_arg(table), tensor_arg(t.i)}, {8, 4});
  EXPECT_TRUE(t.use().gathers_alone());
  t.call("aten::index_add", {tensor_arg(table), Arg{int64_t{0}}, tensor_arg(t.i), tensor_arg(table)},
         {100, 4});
  EXPECT_FALSE(t.use().gathers_alone());
}

TEST(IntegerUses, AnIndexMovedByANumberHasBounds) {
  Task t;
  const auto table = t.s.tensor({100, 4});
  const auto last = t.call("aten::sub.Tensor", {tensor_arg(t.i), Arg{int64_t{1}}}, {8}, DType::kI64);
  t.call("aten::index.Tensor", {tensor_arg(table), Arg{List{{tensor_arg(last)}, false}}}, {8, 4});
  EXPECT_EQ(t.use().least, 1);
  EXPECT_EQ(t.use().bound, 101);
  EXPECT_FALSE(t.use().obscure);
  const auto twice = t.call("aten::mul.Tensor", {tensor_arg(last), Arg{int64_t{2}}}, {8}, DType::kI64);
  t.call("aten::index.Tensor", {tensor_arg(table), Arg{List{{tensor_arg(twice)}, false}}}, {8, 4});
  EXPECT_TRUE(t.use().obscure);
}

TEST(IntegerUses, LengthsAreComparedWithPositions) {
  Task t;
  const auto positions = t.call("aten::arange", {Arg{int64_t{64}}}, {64}, DType::kI64);
  const auto from_one = t.call("aten::arange.start", {Arg{int64_t{1}}, Arg{int64_t{9}}}, {8}, DType::kI64);
  t.call("aten::lt.Tensor", {tensor_arg(from_one), tensor_arg(t.i)}, {8}, DType::kBool);
  EXPECT_FALSE(t.use().are_lengths());
  t.call("aten::lt.Tensor", {tensor_arg(positions), tensor_arg(t.i)}, {64}, DType::kBool);
  EXPECT_TRUE(t.use().are_lengths());
  EXPECT_EQ(t.use().positions, 64);
}

TEST(IntegerUses, ARemainderIsWithinBoundsWhateverItIsTakenOf) {
  Task t;
  const auto table = t.s.tensor({100, 4});
  const auto row = t.call("aten::remainder.Scalar", {tensor_arg(t.i), Arg{int64_t{100}}}, {8}, DType::kI64);
  t.call("aten::index.Tensor", {tensor_arg(table), Arg{List{{tensor_arg(row)}, false}}}, {8, 4});
  EXPECT_TRUE(t.use().numbers_alone());
  EXPECT_TRUE(t.use().reduced);
  EXPECT_FALSE(t.use().multiplied);
  t.call("aten::mul.Tensor", {tensor_arg(t.i), tensor_arg(t.i)}, {8}, DType::kI64);
  EXPECT_TRUE(t.use().multiplied);
}

TEST(IntegerUses, MarksAreNoted) {
  Task t;
  const auto logits = t.s.tensor({8, 100});
  EXPECT_TRUE(t.use().marks.empty());
  t.call("aten::embedding", {tensor_arg(logits), tensor_arg(t.i), Arg{int64_t{-1}}}, {8, 100});
  EXPECT_TRUE(t.use().marks.empty()) << "no padding";
  t.call("aten::ne.Scalar", {tensor_arg(t.i), Arg{int64_t{-7}}}, {8}, DType::kBool);
  t.call("aten::nll_loss", {tensor_arg(logits), tensor_arg(t.i), Arg{}, Arg{int64_t{1}}, Arg{int64_t{-100}}},
         {});
  EXPECT_EQ(t.use().marks, (std::set<int64_t>{-100, -7}));
}

TEST(IntegerUses, WhatIsComparedAloneIsAMask) {
  Task t;
  const auto range = t.s.tensor({8}, DType::kI64), x = t.s.tensor({8});
  const auto mask = t.call("aten::lt.Tensor", {tensor_arg(range), tensor_arg(t.i)}, {8}, DType::kBool);
  t.call("aten::masked_fill.Scalar", {tensor_arg(x), tensor_arg(mask), Arg{0.0}}, {8});
  EXPECT_TRUE(t.use().compared_alone);
  EXPECT_FALSE(t.use().obscure);
  t.call("aten::mul.Tensor", {tensor_arg(x), tensor_arg(t.i)}, {8});
  EXPECT_FALSE(t.use().compared_alone);
  EXPECT_FALSE(t.use().obscure);
}

TEST(IntegerUses, NumbersThatAreNeitherComparedNorLookedUpBy) {
  Task t;
  const auto x = t.s.tensor({8});
  EXPECT_FALSE(t.use().numbers_alone()) << "nothing is computed with them";
  t.call("aten::mul.Tensor", {tensor_arg(x), tensor_arg(t.i)}, {8});
  EXPECT_TRUE(t.use().numbers_alone());
  Task shift = t;
  shift.call("aten::bitwise_left_shift.Tensor", {tensor_arg(t.i), tensor_arg(t.i)}, {8}, DType::kI64);
  EXPECT_FALSE(shift.use().numbers_alone());
  t.call("aten::lt.Tensor", {tensor_arg(x), tensor_arg(t.i)}, {8}, DType::kBool);
  EXPECT_FALSE(t.use().numbers_alone());
}

TEST(IntegerUses, EachPlaceOfAnIndexHasItsDimension) {
  Task t;
  const auto table = t.s.tensor({3, 50, 9});
  t.call("aten::index.Tensor", {tensor_arg(table), Arg{List{{Arg{None{}}, tensor_arg(t.i)}, false}}},
         {3, 8, 9});
  EXPECT_EQ(t.use().bound, 50);
}

TEST(IntegerUses, ClassesOfALoss) {
  Task t;
  const auto logits = t.s.tensor({8, 11});
  t.call("aten::cross_entropy_loss", {tensor_arg(logits), tensor_arg(t.i)}, {});
  EXPECT_EQ(t.use().bound, 11);
}

TEST(IntegerUses, AnUnknownOperatorIsObscure) {
  Task t;
  t.call("aten::searchsorted.Tensor", {tensor_arg(t.i), tensor_arg(t.s.tensor({8}))}, {8}, DType::kI64);
  EXPECT_TRUE(t.use().obscure);
}

}  // namespace
}  // namespace nereid::replay
