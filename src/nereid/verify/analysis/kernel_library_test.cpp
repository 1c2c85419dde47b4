#include "nereid/verify/analysis/kernel_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/trace/format/codec.h"
#include "tests/support/trace_sketch.h"

namespace nereid::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kScale =
    R"(#loc = loc("c.py":4:0)
module {
  tt.func public @scale(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), %out_ptr:)"
    R"( !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("out_ptr"(#loc)), %n: i32 loc("n"(#loc)), %factor:)"
    R"( f32 loc("factor"(#loc))) attributes {noinline = false} {
    %c64_i32 = arith.constant 64 : i32 loc(#loc)
    %pid = tt.get_program_id x : i32 loc(#loc)
    %start = arith.muli %pid, %c64_i32 : i32 loc(#loc)
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc)
    %starts = tt.splat %start : i32 -> tensor<64xi32> loc(#loc)
    %offsets = arith.addi %starts, %range : tensor<64xi32> loc(#loc)
    %ns = tt.splat %n : i32 -> tensor<64xi32> loc(#loc)
    %mask = arith.cmpi slt, %offsets, %ns : tensor<64xi32> loc(#loc)
    %xs = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %xp = tt.addptr %xs, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    %x = tt.load %xp, %mask : tensor<64x!tt.ptr<f32>> loc(#loc)
    %outs = tt.splat %out_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %outp = tt.addptr %outs, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    %factors = tt.splat %factor : f32 -> tensor<64xf32> loc(#loc)
    %y = arith.mulf %x, %factors : tensor<64xf32> loc(#loc)
    tt.store %outp, %y, %mask : tensor<64x!tt.ptr<f32>> loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
)";

// forward: mm, then scale, then a view.
trace::Sketch sample() {
  trace::Sketch s;
  const auto x = s.tensor({10, 10}, trace::DType::kF32, trace::Role::kInput), y = s.tensor({10, 10}),
             out = s.tensor({100});
  const auto kernel = s.kernel("scale");
  s.trace.kernels[0].ttir = kScale;
  s.trace.kernels[0].hash = "scale";
  s.phase(trace::PhaseKind::kForward, 2);
  trace::Call mm;
  mm.op = "aten::mm", mm.args = {{trace::TensorRef{x}}, {trace::TensorRef{x}}},
  mm.result = {trace::TensorRef{y}};
  mm.place = {"c.py", 3};
  s.step(mm);
  trace::Call empty;
  empty.op = "aten::empty", empty.result = {trace::TensorRef{out}};
  s.step(empty);
  trace::Launch launch;
  launch.alternatives.emplace_back();
  launch.alternatives[0].kernel = kernel, launch.alternatives[0].grid = {2, 1, 1};
  launch.alternatives[0].args = {trace::PointerArg{y, 0}, trace::PointerArg{out, 0}, trace::IntArg{100},
                                 trace::FloatArg{2.5}};
  launch.place = {"c.py", 9};
  s.step(launch);
  trace::Call view;
  view.op = "aten::view", view.args = {{trace::TensorRef{out}}},
  view.result = {trace::TensorRef{s.view(out, {10, 10}, {10, 1})}};
  s.step(view);
  return s;
}

TEST(Facts, OfATrace) {
  const auto s = sample();
  KernelLibrary library;
  const auto facts = analyze_trace(s.trace, library);
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  ASSERT_EQ(facts->phases.size(), 1U);
  const auto& steps = facts->phases[0].steps;
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(facts->judged(), 0);

  EXPECT_EQ(steps[0].work, Work::kHeavy);
  EXPECT_EQ(steps[0].kind, "contraction");
  EXPECT_EQ(steps[0].flops, 2000);
  EXPECT_EQ(steps[0].bytes, 800);
  EXPECT_THAT(steps[0].reads, ElementsAre(0));
  EXPECT_THAT(steps[0].writes, ElementsAre(1));

  EXPECT_EQ(steps[1].work, Work::kFree);

  EXPECT_EQ(steps[2].work, Work::kTriton);
  EXPECT_EQ(steps[2].name, "scale");
  EXPECT_EQ(steps[2].place.line, 9);
  EXPECT_THAT(steps[2].reads, ElementsAre(1));
  EXPECT_THAT(steps[2].writes, ElementsAre(2));
  EXPECT_NEAR(steps[2].bytes, 800, 230);  // whole blocks may be counted: the mask is not looked at
  EXPECT_GT(steps[2].flops, 0);

  EXPECT_EQ(steps[3].work, Work::kFree);
  EXPECT_THAT(steps[3].writes, IsEmpty());
  ASSERT_EQ(facts->kernels.size(), 1U);
  EXPECT_FALSE(facts->kernels[0].int_to_ptr);
  EXPECT_THAT(facts->kernels[0].assembly, IsEmpty());
}

TEST(Facts, AKernelThatCannotBeReadIsKept) {
  auto s = sample();
  s.trace.kernels[0].ttir = "module { tt.func public @scale() { %0 = tt.frobnicate : i32 } }";
  s.trace.kernels[0].hash = "other";
  KernelLibrary library;
  const auto facts = analyze_trace(s.trace, library);
  ASSERT_TRUE(facts.ok());
  EXPECT_THAT(facts->kernels[0].unreadable, HasSubstr("frobnicate"));
  EXPECT_EQ(facts->phases[0].steps[2].writes.size(), 2U);  // anything may be written
}

TEST(Facts, WhatRulesForbidIsFoundInTextsThatCannotBeRead) {
  const auto facts = facts_of_unreadable(
      "%0 = tt.elementwise_inline_asm \"mov.u64 $0, %globaltimer;\\0Aadd\" {x}\n %1 = tt.int_to_ptr %0",
      "Unsupported: inline assembly");
  EXPECT_THAT(facts.assembly, ElementsAre("mov.u64 $0, %globaltimer;\nadd"));
  EXPECT_TRUE(facts.int_to_ptr);
  EXPECT_FALSE(facts.malformed);
  EXPECT_TRUE(facts_of_unreadable("", "TTIR line 1").malformed);
  EXPECT_EQ(facts_of_unreadable("", "Unsupported: external function mine (f32)").foreign_function, "mine");
}

}  // namespace
}  // namespace nereid::verify
