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

}  // namespace
}  // namespace nereid::replay
