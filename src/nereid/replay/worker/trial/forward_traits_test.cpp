#include "nereid/replay/worker/trial/forward_traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;
using testing::ElementsAre;

std::set<double> bounds_of(const std::string& op, std::vector<Arg> numbers) {
  const auto bounds = bounds_of_clamps(sample_task(true, 8, [&](Sketch& s, const TaskTensors& t) {
    const auto out = s.tensor({8});
    numbers.insert(numbers.begin(), tensor_arg(t.x));
    s.step(make_call(op, numbers, tensor_arg(out)));
    return tensor_arg(out);
  }));
  return {bounds.begin(), bounds.end()};  // each of the three calls names them
}

TEST(ForwardTraits, BoundsOfClampsAreTheNumbersThatTheForwardNames) {
  EXPECT_THAT(bounds_of("aten::clamp", {Arg{-0.5}, Arg{3.0}}), ElementsAre(-0.5, 3));
  EXPECT_THAT(bounds_of("aten::clamp_min", {Arg{int64_t{2}}}), ElementsAre(2));
  EXPECT_THAT(bounds_of("aten::hardtanh", {}), ElementsAre(-1, 1));
  EXPECT_THAT(bounds_of("aten::mul.Scalar", {Arg{3.0}}), testing::IsEmpty());
}

TEST(ForwardTraits, EdgesOfBucketsAreSearchedInOrder) {
  const auto searched = [](const std::string& op, bool edges_first) {
    trace::StorageId storage = -1;
    const auto trace = sample_task(true, 8, [&](Sketch& s, const TaskTensors& t) {
      const auto edges = s.tensor({8}), out = s.tensor({8});
      storage = s.trace.values[static_cast<size_t>(edges)].storage;
      s.step(make_call("aten::neg", {tensor_arg(t.x)}, tensor_arg(edges)));
      s.step(make_call(op, {tensor_arg(edges_first ? edges : t.x), tensor_arg(edges_first ? t.x : edges)},
                       tensor_arg(out)));
      return tensor_arg(out);
    });
    return searched_in_order(trace).contains(storage);
  };
  EXPECT_TRUE(searched("aten::bucketize.Tensor", false));
  EXPECT_FALSE(searched("aten::bucketize.Tensor", true));
  EXPECT_TRUE(searched("aten::searchsorted.Tensor", true));
  EXPECT_FALSE(searched("aten::add.Tensor", true));
}

Trace forward_with(const std::string& op, const std::vector<Arg>& numbers, bool of_input,
                   DType type = DType::kF32) {
  return sample_task(true, 8, [&](Sketch& s, const TaskTensors& t) {
    const auto computed = s.tensor({8}), out = s.tensor({8}, type);
    s.step(make_call("aten::exp", {tensor_arg(t.x)}, tensor_arg(computed)));
    std::vector<Arg> args = {tensor_arg(of_input ? t.x : computed)};
    args.insert(args.end(), numbers.begin(), numbers.end());
    s.step(make_call(op, args, tensor_arg(out)));
    return tensor_arg(out);
  });
}

TEST(ForwardTraits, ExactInputsDecideWhereNothingComputedIsCompared) {
  EXPECT_TRUE(decides_by_inputs(forward_with("aten::argmax", {}, true, DType::kI64)));
  EXPECT_FALSE(decides_by_inputs(forward_with("aten::argmax", {}, false, DType::kI64)));
  EXPECT_TRUE(decides_by_inputs(forward_with("aten::gt.Scalar", {Arg{0.5}}, true, DType::kBool)));
  EXPECT_FALSE(decides_by_inputs(forward_with("aten::neg", {}, true)));
}

TEST(ForwardTraits, ANumberMayStandForAnInfinity) {
  EXPECT_TRUE(has_mask_constant(forward_with("aten::masked_fill.Scalar", {Arg{-1e9}}, true)));
  EXPECT_FALSE(has_mask_constant(forward_with("aten::masked_fill.Scalar", {Arg{-3.4e38}}, true)));
  EXPECT_FALSE(has_mask_constant(forward_with("aten::mul.Scalar", {Arg{-2.0}}, true)));
}

TEST(ForwardTraits, IntegersOfFloatsAreSeen) {
  EXPECT_TRUE(makes_integers_of_floats(forward_with("aten::_to_copy", {}, true, DType::kI32)));
  EXPECT_FALSE(makes_integers_of_floats(forward_with("aten::_to_copy", {}, true, DType::kF16)));
  EXPECT_FALSE(makes_integers_of_floats(forward_with("aten::argmax", {}, true, DType::kI64)));
}

}  // namespace
}  // namespace nereid::replay
