#include "nereid/trace/dataflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::trace {
namespace {

using ::testing::ElementsAre;

class DataFlowTest : public ::testing::Test {
 protected:
  DataFlowTest() { sketch.phase(PhaseKind::kForward); }
  void call(std::string op, const std::vector<ValueId>& args, ValueId result) {
    std::vector<Arg> list;
    for (const ValueId id : args) list.push_back(tensor_arg(id));
    sketch.step(make_call(std::move(op), std::move(list), tensor_arg(result)));
  }
  DataFlow run(const std::vector<ValueId>& outputs, const KernelUses& uses = {}) {
    sketch.trace.phases[0].output = tuple_of(outputs);
    return follow(sketch.trace, sketch.trace.phases[0], uses);
  }
  // "from>to" of every flow; "." is the time before the phase.
  static std::vector<std::string> arrows(const DataFlow& flow) {
    std::vector<std::string> all;
    for (const Flow& f : flow.flows)
      all.push_back((f.from < 0 ? "." : std::to_string(f.from)) + ">" + std::to_string(f.to));
    return all;
  }
  static KernelUses reads_then_writes(size_t reads) {
    return [reads](const Kernel&) {
      std::vector<ParameterUse> uses(8, ParameterUse{.read = false, .written = true});
      std::fill(uses.begin(), uses.begin() + static_cast<int64_t>(reads),
                ParameterUse{.read = true, .written = false});
      return uses;
    };
  }
  Sketch sketch;
  const ValueId x = sketch.tensor({4, 4}), a = sketch.tensor({4, 4}), b = sketch.tensor({4, 4}),
                c = sketch.tensor({4, 4});
};

TEST_F(DataFlowTest, FollowsAChainAndSeesWhatIsUnused) {
  call("aten::relu", {x}, a);
  call("aten::neg", {x}, c);  // unused
  call("aten::exp", {a}, b);
  const DataFlow flow = run({b});
  EXPECT_THAT(arrows(flow), ElementsAre(".>0", ".>1", "0>2", "2>3"));
  EXPECT_THAT(flow.reaches_output, ElementsAre(true, false, true));
}

TEST_F(DataFlowTest, HalvesOfABufferAreTwoThings) {
  const ValueId top = sketch.view(a, {2, 4}, {4, 1}), bottom = sketch.view(a, {2, 4}, {4, 1}, 8);
  call("aten::zero_", {top}, top);
  call("aten::copy_", {bottom, x}, bottom);
  call("aten::exp", {bottom}, b);
  const DataFlow flow = run({b});
  EXPECT_THAT(flow.reaches_output, ElementsAre(false, true, true));
  EXPECT_THAT(run({a}).reaches_output, ElementsAre(true, true, false));
}

TEST_F(DataFlowTest, AnOverwrittenResultIsLost) {
  const KernelId kernel = sketch.kernel();
  sketch.step(make_launch(kernel, {x, a}));
  call("aten::copy_", {a, x}, a);
  EXPECT_THAT(run({a}, reads_then_writes(1)).reaches_output, ElementsAre(false, true));
}

TEST_F(DataFlowTest, WhatALaunchMayWriteHidesNothing) {
  call("aten::relu", {x}, a);
  sketch.step(make_launch(sketch.kernel(), {x, a}));
  const DataFlow flow = run({a}, reads_then_writes(1));
  EXPECT_THAT(flow.reaches_output, ElementsAre(true, true));
  EXPECT_THAT(arrows(flow), ElementsAre(".>0", ".>1", "1>2", "0>2"));
}

TEST_F(DataFlowTest, NothingComesOutOfAFreshAllocation) {
  call("aten::empty_like", {x}, a);
  sketch.step(make_launch(sketch.kernel(), {x, a}));
  EXPECT_THAT(arrows(run({a}, reads_then_writes(1))), ElementsAre(".>1", "1>2"));
}

TEST_F(DataFlowTest, EachOutputHasItsOwnPast) {
  call("aten::relu", {x}, a);
  sketch.step(make_launch(sketch.kernel(), {a, b}));
  call("aten::neg", {a}, c);
  const DataFlow flow = run({b, c}, reads_then_writes(1));
  EXPECT_THAT(flow.steps_behind(sketch.trace, b), ElementsAre(true, true, false));
  EXPECT_THAT(flow.steps_behind(sketch.trace, c), ElementsAre(true, false, true));
  EXPECT_THAT(flow.steps_behind(sketch.trace, x), ElementsAre(false, false, false));
}

TEST_F(DataFlowTest, AHostileTraceIsFollowedOnlySoFar) {
  const ValueId column = sketch.view(a, {4}, {4}, 1);
  for (int i = 0; i < 20000; ++i) call("aten::neg_", {column}, column);
  const DataFlow flow = run({b});
  EXPECT_FALSE(flow.complete);
  EXPECT_TRUE(flow.reaches_output[0]);
}

TEST_F(DataFlowTest, StridedWritesLeaveWhatLiesBetween) {
  const ValueId column = sketch.view(a, {4}, {4}, 1);
  call("aten::relu", {x}, a);
  call("aten::zero_", {column}, column);
  EXPECT_THAT(run({a}).reaches_output, ElementsAre(true, true));
}

}  // namespace
}  // namespace nereid::trace
