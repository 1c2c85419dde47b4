#include "nereid/replay/deciding_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;
using testing::ElementsAre;
using testing::IsEmpty;

// The forward: w, or w + x, then `op` of it with these numbers, then times x.
DecidingState of(const std::string& op, const std::vector<Arg>& numbers, bool joined = false) {
  return deciding_state(sample_task(true, 8, [&](Sketch& s, const TaskTensors& t) {
    const auto made = s.tensor({8}), decided = s.tensor({8}), out = s.tensor({8});
    if (joined)
      s.step(make_call("aten::add.Tensor", {tensor_arg(t.w), tensor_arg(t.x)}, tensor_arg(made)));
    else
      s.step(make_call("aten::exp", {tensor_arg(t.w)}, tensor_arg(made)));
    std::vector<Arg> args = {tensor_arg(made)};
    args.insert(args.end(), numbers.begin(), numbers.end());
    s.step(make_call(op, args, tensor_arg(decided)));
    s.step(make_call("aten::mul.Tensor", {tensor_arg(decided), tensor_arg(t.x)}, tensor_arg(out)));
    return tensor_arg(out);
  }));
}

TEST(DecidingState, IsWhatIsComparedBeforeAnInputJoinsIt) {
  const auto clamped = of("aten::clamp", {Arg{0.01}, Arg{5.0}});
  EXPECT_EQ(clamped.values.size(), 1);
  EXPECT_THAT(clamped.bounds, ElementsAre(0.01, 5));
  EXPECT_EQ(clamped.trials, 2) << "eleven choices of eight elements";
  EXPECT_THAT(of("aten::gt.Scalar", {Arg{int64_t{3}}}).bounds, ElementsAre(3));
  EXPECT_EQ(of("aten::relu", {}).values.size(), 1);
  EXPECT_THAT(of("aten::relu", {}).bounds, IsEmpty());
  EXPECT_THAT(of("aten::sigmoid", {}).values, IsEmpty());
  EXPECT_THAT(of("aten::clamp", {Arg{0.01}, Arg{5.0}}, true).values, IsEmpty());
  EXPECT_EQ(of("aten::sigmoid", {}).trials, 0);
}

TEST(DecidingState, SidesLieAroundEachBound) {
  const DecidingState state{.values = {0}, .near_bounds = {false}, .bounds = {-2, 5}, .trials = 0};
  ASSERT_EQ(state.choices(), first_at_bounds() + 6);
  for (const double chance : {0.0, 0.5, 0.99}) {
    const auto made = [&](int choice, double was) {
      const auto side = side_of(state, choice, chance);
      return was * side.times + side.plus;
    };
    EXPECT_GE(made(0, 1), 32);
    EXPECT_LE(made(1, 1), -32);
    EXPECT_EQ(made(2, 1), 0);
    EXPECT_LT(made(4, 1), -1);
    const int first = first_at_bounds();
    EXPECT_LT(made(first, 1), -2);
    EXPECT_GT(made(first + 1, 1), -2);
    EXPECT_EQ(made(first + 2, 1), -2);
    EXPECT_GT(made(first + 3, 1), 5);
    EXPECT_LT(made(first + 4, 1), 5);
    EXPECT_GT(made(first + 4, 1), 4.8);
  }
}

}  // namespace
}  // namespace nereid::replay
