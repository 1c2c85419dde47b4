#include "nereid/replay/host/upcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/support/trace_sketch.h"

namespace nereid::replay {
namespace {

using namespace trace;
using testing::HasSubstr;

Trace one_call(DType type, const std::string& op, std::vector<std::pair<std::string, Arg>> kwargs = {}) {
  Sketch s;
  const auto x = s.tensor({4}, type), y = s.tensor({4}, type), out = s.tensor({4}, type);
  s.phase(PhaseKind::kForward, 2);
  auto call = make_call(op, {tensor_arg(x), tensor_arg(y)}, tensor_arg(out));
  call.kwargs = std::move(kwargs);
  s.step(call);
  s.trace.phases.back().output = tensor_arg(out);
  return s.trace;
}

const Call& first_call(const Trace& trace) { return std::get<Call>(trace.phases.back().steps.front()); }

TEST(UpcastTest, EveryFloatingDtypeBecomesFloat64) {
  for (const auto type : {DType::kF16, DType::kBF16, DType::kF32}) {
    const auto upcasted =
        upcast(one_call(type, "aten::add.Tensor", {{"dtype", Arg{Named{"dtype", "bf16"}}}}), {});
    ASSERT_TRUE(upcasted.ok()) << upcasted.error().message;
    EXPECT_EQ(upcasted->trace.values[0].dtype, DType::kF64);
    EXPECT_EQ(upcasted->trace.storages[0].bytes, 32);
    EXPECT_EQ(upcasted->was[0], type);
    EXPECT_EQ(std::get<Named>(first_call(upcasted->trace).kwargs[0].second.node).name, "f64");
  }
  const auto complex = upcast(one_call(DType::kC64, "aten::add.Tensor"), {});
  EXPECT_EQ(complex->trace.values[0].dtype, DType::kC128);
}

TEST(UpcastTest, IntegersAndFp8Stay) {
  for (const auto type : {DType::kI32, DType::kBool, DType::kF8E4M3FN}) {
    const auto upcasted = upcast(one_call(type, "aten::add.Tensor"), {});
    EXPECT_EQ(upcasted->trace.values[0].dtype, type);
    EXPECT_FALSE(upcasted->was[0]);
  }
}

// Its inputs are moved like others, to see what their rounding does.
TEST(UpcastTest, Float64IsKnownAsWhatItWas) {
  const auto upcasted = upcast(one_call(DType::kF64, "aten::add.Tensor"), {});
  EXPECT_EQ(upcasted->trace.values[0].dtype, DType::kF64);
  EXPECT_EQ(upcasted->trace.storages[0].bytes,
            upcast(one_call(DType::kF32, "aten::add.Tensor"), {})->trace.storages[0].bytes);
  EXPECT_EQ(upcasted->was[0], DType::kF64);
}

TEST(UpcastTest, ConstantsAreConvertedExactly) {
  const auto converted = [](DType type, std::string data) {
    Sketch s;
    s.tensor({2}, type, Role::kConstant);
    s.trace.storages[0].data = std::move(data);
    s.phase(PhaseKind::kForward, 2);
    auto upcasted = upcast(s.trace, {});
    std::vector<double> out(2);
    std::memcpy(out.data(), upcasted->trace.storages[0].data.data(), 16);
    return out;
  };
  const float f32[] = {0.1f, -2.5f};
  EXPECT_EQ(converted(DType::kF32, {reinterpret_cast<const char*>(f32), 8}),
            (std::vector<double>{0.1f, -2.5}));
  const uint16_t f16[] = {0x3555, 0x0001};  // 0.333251953125 and the smallest subnormal
  EXPECT_EQ(converted(DType::kF16, {reinterpret_cast<const char*>(f16), 4}),
            (std::vector<double>{0.333251953125, 0x1p-24}));
  const uint16_t bf16[] = {0x3f80, 0xff80};
  EXPECT_EQ(converted(DType::kBF16, {reinterpret_cast<const char*>(bf16), 4}),
            (std::vector<double>{1, -INFINITY}));
}

TEST(UpcastTest, RandomOperatorsDrawInTheDtypeTheyHad) {
  const auto in_place = upcast(one_call(DType::kF32, "aten::normal_"), {});
  EXPECT_EQ(first_call(in_place->trace).op, "nereid::draw_f32 aten::normal_");
  const auto like = upcast(one_call(DType::kF16, "aten::rand_like"), {});
  ASSERT_EQ(first_call(like->trace).kwargs.size(), 1u);
  EXPECT_EQ(std::get<Named>(first_call(like->trace).kwargs[0].second.node).name, "f16");
}

TEST(UpcastTest, InfinitiesBecomeTheLargestNumberOfTheDtypeThatTheyHad) {
  const auto bounds = [](DType type, std::vector<std::pair<std::string, Arg>> kwargs) {
    auto trace = one_call(type, "aten::nan_to_num", std::move(kwargs));
    std::get<Call>(trace.phases.back().steps.front()).args[1] = Arg{0.5};
    const auto upcasted = upcast(trace, {});
    std::map<std::string, double> found;
    for (const auto& [name, arg] : first_call(upcasted->trace).kwargs)
      found[name] = std::get<double>(arg.node);
    return found;
  };
  using Found = std::map<std::string, double>;
  EXPECT_EQ(bounds(DType::kF16, {}), (Found{{"posinf", 65504}, {"neginf", -65504}}));
  EXPECT_EQ(bounds(DType::kF16, {{"posinf", Arg{7.0}}, {"neginf", Arg{}}}),
            (Found{{"posinf", 7}, {"neginf", -65504}}));
}

TEST(UpcastTest, ContractionsAreMarkedWhereTf32IsAllowed) {
  auto trace = one_call(DType::kF32, "aten::conv2d");
  EXPECT_TRUE(tf32_of(trace, false).convolutions) << "PyTorch's default";
  EXPECT_FALSE(tf32_of(trace, false).matmuls);
  EXPECT_TRUE(uses_tf32(trace, tf32_of(trace, false)));
  EXPECT_EQ(first_call(upcast(trace, tf32_of(trace, false))->trace).op, "nereid::tf32 aten::conv2d");
  trace.flags["cudnn.allow_tf32"] = 0;
  EXPECT_FALSE(uses_tf32(trace, tf32_of(trace, false)));
  EXPECT_FALSE(uses_tf32(one_call(DType::kF32, "aten::mm"), tf32_of(trace, false)));
  EXPECT_TRUE(uses_tf32(one_call(DType::kF32, "aten::mm"), tf32_of(trace, true)));
  EXPECT_FALSE(uses_tf32(one_call(DType::kF16, "aten::mm"), tf32_of(trace, true)));
}

TEST(UpcastTest, SumsOfNarrowNumbersAreMarkedOrderSensitive) {
  const auto marked = [](DType type, const std::string& op) {
    auto upcasted = upcast(one_call(type, op), {});
    const bool any = mark_order_sensitive(upcasted.value());
    EXPECT_EQ(first_call(upcasted->trace).op, any ? "nereid::order_check " + op : op);
    return any;
  };
  EXPECT_TRUE(marked(DType::kF32, "aten::mm"));
  EXPECT_TRUE(marked(DType::kBF16, "aten::convolution"));
  EXPECT_TRUE(marked(DType::kF16, "aten::sum.dim_IntList"));
  EXPECT_TRUE(marked(DType::kF32, "aten::scaled_dot_product_attention"));
  EXPECT_FALSE(marked(DType::kF64, "aten::mm")) << "float64 is its own truth";
  EXPECT_FALSE(marked(DType::kF32, "aten::add.Tensor"));
}

TEST(UpcastTest, WhatCannotBeUpcastSaysWhy) {
  Sketch bits;
  const auto x = bits.tensor({4});
  bits.reinterpret(x, DType::kI32);
  bits.phase(PhaseKind::kForward, 2);
  EXPECT_THAT(upcast(bits.trace, {}).error().message, HasSubstr("viewed as f32 and as i32"));
  Sketch kernels;
  const auto y = kernels.tensor({4});
  kernels.kernel();
  kernels.phase(PhaseKind::kForward, 2);
  kernels.step(make_launch(0, {y}));
  EXPECT_THAT(upcast(kernels.trace, {}).error().message, HasSubstr("launches Triton"));
}

}  // namespace
}  // namespace nereid::replay
