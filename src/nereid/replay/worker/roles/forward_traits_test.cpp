#include "nereid/replay/worker/roles/forward_traits.h"

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

}  // namespace
}  // namespace nereid::replay
