#include "nereid/replay/worker/inputs/input_sensitivity.h"

#include <gtest/gtest.h>

#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;

constexpr int64_t kN = 4096;

std::vector<InputSensitivity> sensitivity_of_task(const TaskForward& forward, int samples = 64) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  const auto trace = sample_task(true, kN, forward);
  const auto program = Program::prepare(trace, *machine, {.may_keep_inputs = true, .reference = true});
  Replay replay(*program, *machine);
  const RunOptions options{.seed = 3};
  replay.start(options, [](StorageId, Replay&) {}, {});
  replay.begin_judged();
  const auto input = tensors_in(program->phases()[program->judged()].phase->inputs)[0];
  const auto before = replay.value(input).clone();
  const auto needs = input_sensitivity(replay, options, 7, samples, Deadline::after(60));
  EXPECT_TRUE(same_bits(before, replay.value(input))) << "the inputs are as they were";
  return needs;
}

Arg called(Sketch& s, const char* op, std::vector<Arg> args, std::vector<int64_t> sizes) {
  const auto out = s.tensor(sizes);
  s.step(make_call(op, std::move(args), tensor_arg(out)));
  return tensor_arg(out);
}

TEST(InputSensitivityTest, AllOfWhatIsAddedIsNeeded) {
  const auto needs = sensitivity_of_task([](Sketch& s, const TaskTensors& t) {
    return called(s, "aten::add.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, {kN});
  });
  ASSERT_EQ(needs.size(), 2u);
  for (const auto& input : needs) {
    EXPECT_EQ(input.bytes, 4 * kN);
    EXPECT_EQ(input.tried, 64);
    EXPECT_EQ(input.mattered, 64);
  }
}

TEST(InputSensitivityTest, WhatIsCutOffIsNotNeeded) {
  const auto needs = sensitivity_of_task([](Sketch& s, const TaskTensors& t) {
    return called(s, "aten::relu", {tensor_arg(s.view(t.x, {kN / 2}, {1}))}, {kN / 2});
  });
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_GT(needs[0].mattered, 16);
  EXPECT_LT(needs[0].mattered, 48);
  EXPECT_EQ(needs[1].mattered, 0);
}

TEST(InputSensitivityTest, AViewIsReturnedWithoutARead) {
  const auto views = sensitivity_of_task(
      [](Sketch& s, const TaskTensors& t) { return tensor_arg(s.view(t.x, {kN / 2}, {1})); });
  for (const auto& input : views) EXPECT_EQ(input.mattered, 0);
}

TEST(InputSensitivityTest, WhatAForwardWritesIntoItsInputIsComputed) {
  const auto needs = sensitivity_of_task([](Sketch& s, const TaskTensors& t) {
    s.step(make_call("aten::add_.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(t.x)));
    return tensor_arg(t.x);
  });
  ASSERT_EQ(needs.size(), 1u) << "what the forward writes is put back before every run";
  EXPECT_EQ(needs[0].mattered, 64);
}

TEST(InputSensitivityTest, WhatIsLostInASumIsNotSure) {
  const auto needs = sensitivity_of_task([](Sketch& s, const TaskTensors& t) {
    const auto all = called(s, "aten::ones_like", {tensor_arg(t.x)}, {kN});
    const auto far = called(s, "aten::mul.Tensor", {all, Arg{1e6}}, {kN});
    const auto sum = called(s, "aten::add.Tensor", {far, tensor_arg(t.x)}, {kN});
    return called(s, "aten::add.Tensor", {sum, tensor_arg(t.y)}, {kN});
  });
  for (const auto& input : needs) EXPECT_EQ(input.mattered, 0);
}

}  // namespace
}  // namespace nereid::replay
