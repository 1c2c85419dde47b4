#include "nereid/search/taught_steps.h"

#include <gmock/gmock.h>

#include "nereid/search/fragment_text.h"

namespace nereid::search {
namespace {

using testing::HasSubstr;
using trace::Arg;

Arg ints(const std::vector<int64_t>& list) {
  trace::List items;
  for (const int64_t i : list) items.items.push_back({i});
  return {items};
}

// One call of an input, and what is told in its place.
struct Told {
  Told(const std::string& op, const std::vector<int64_t>& sizes, std::vector<Arg> args, const std::vector<int64_t>& result,
       std::vector<std::pair<std::string, Arg>> kwargs = {}) {
    input = value(sizes), output = value(result);
    trace::Call call{.op = op, .args = {}, .kwargs = std::move(kwargs), .result = {trace::TensorRef{output}}, .parts = {}, .place = {}};
    call.args.push_back({trace::TensorRef{input}});
    for (auto& arg : args) call.args.push_back(std::move(arg));
    forward.steps.emplace_back(std::move(call));
    told = taught_steps(trace, forward, {0});
    std::vector<trace::ValueId> inputs = {input};
    for (const auto& [id, number] : told.numbers) inputs.push_back(id);
    const auto whole = fragment_text(told.trace, told.forward, told.steps, inputs, {output});
    EXPECT_TRUE(whole.ok());
    if (whole.ok()) text = whole->substr(whole->find("x0"), whole->find("        return t") - whole->find("x0"));
  }
  trace::ValueId value(const std::vector<int64_t>& sizes) {
    trace.storages.push_back({.bytes = 4000, .role = trace::Role::kTemporary, .device = {}, .name = {}, .data = {}});
    trace::Value v;
    v.storage = static_cast<int>(trace.storages.size()) - 1, v.sizes = sizes, v.strides.resize(sizes.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) v.strides[d] = stride;
    trace.values.push_back(v);
    return static_cast<trace::ValueId>(trace.values.size() - 1);
  }
  trace::Trace trace;
  trace::Phase forward;
  trace::ValueId input, output;
  TaughtSteps told;
  std::string text;
};

TEST(TaughtSteps, DimensionsAreCountedFromTheFront) {
  EXPECT_THAT(Told("aten::_softmax", {4, 6}, {{int64_t{-1}}, {false}}, {4, 6}).text, HasSubstr("t0 = torch.ops.aten._softmax.default(x0, 1, False)\n"));
  EXPECT_THAT(Told("aten::flip", {4, 6}, {ints({-2})}, {4, 6}).text, HasSubstr("t0 = torch.ops.aten.flip.default(x0, [0])\n"));
  const Told same("aten::cumsum", {4, 6}, {{int64_t{1}}}, {4, 6});
  EXPECT_FALSE(same.told.changed);
  EXPECT_THAT(same.text, HasSubstr("t0 = torch.ops.aten.cumsum.default(x0, 1)\n"));
  EXPECT_FALSE(Told("aten::cumsum", {4, 6}, {{int64_t{-3}}}, {4, 6}).told.changed);  // no dimension of it
}

TEST(TaughtSteps, OneDimensionIsReducedOrAll) {
  EXPECT_THAT(Told("aten::amax", {4, 6}, {ints({-1})}, {4}).text, HasSubstr("        t0 = torch.ops.aten.amax.default(x0, [1])\n"));
  EXPECT_THAT(Told("aten::mean.dim", {9, 37, 16, 19}, {ints({2, 3})}, {9, 37}).text,
              HasSubstr("        t0 = torch.ops.aten.view.default(x0, [9, 37, 304])\n        t1 = torch.ops.aten.mean.dim(t0, [2])\n"));
  EXPECT_THAT(Told("aten::mean.dim", {4, 6}, {ints({-1}), {true}}, {4, 1}).text,
              HasSubstr("        t0 = torch.ops.aten.mean.dim(x0, [1])\n        t1 = torch.ops.aten.view.default(t0, [4, 1])\n"));
  EXPECT_THAT(Told("aten::var.correction", {4, 6}, {ints({0}), }, {1, 6}, {{"correction", {int64_t{1}}}, {"keepdim", {true}}}).text,
              HasSubstr("t0 = torch.ops.aten.var.correction(x0, [0], correction=1)\n        t1 = torch.ops.aten.view.default(t0, [1, 6])\n"));
  EXPECT_THAT(Told("aten::sum.dim_IntList", {4, 6}, {ints({0, 1})}, {}).text, HasSubstr("        t0 = torch.ops.aten.sum.default(x0)\n"));
  EXPECT_THAT(Told("aten::argmax", {4, 6}, {{int64_t{-1}}}, {4}).text, HasSubstr("        t0 = torch.ops.aten.argmax.default(x0, 1)\n"));
  EXPECT_FALSE(Told("aten::amax", {4, 6, 8}, {ints({0, 2})}, {6}).told.changed);  // not side by side
  EXPECT_FALSE(Told("aten::amax", {4, 6}, {ints({1})}, {4}).told.changed);
  EXPECT_FALSE(Told("aten::amax", {4, 6}, {}, {}).told.changed);
}

TEST(TaughtSteps, NumbersAreTensors) {
  const Told scaled("aten::mul.Tensor", {4, 6}, {{2.5}}, {4, 6});
  ASSERT_EQ(scaled.told.numbers.size(), 1U);
  EXPECT_EQ(scaled.told.numbers[0].second, 2.5);
  EXPECT_THAT(scaled.text, HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x0, x1)\n"));
  EXPECT_THAT(Told("aten::neg", {4, 6}, {}, {4, 6}).text, HasSubstr("torch.ops.aten.mul.Tensor(x0, x1)"));
  EXPECT_THAT(Told("aten::clamp_min", {4, 6}, {{int64_t{0}}}, {4, 6}).text, HasSubstr("torch.ops.aten.maximum.default(x0, x1)"));
  EXPECT_THAT(Told("aten::clamp", {4, 6}, {{trace::None{}}, {3.0}}, {4, 6}).text, HasSubstr("torch.ops.aten.minimum.default(x0, x1)"));
  EXPECT_THAT(Told("aten::clamp", {4, 6}, {{int64_t{-20}}, {int64_t{20}}}, {4, 6}).text, HasSubstr("torch.ops.aten.clamp.default(x0, -20.0, 20.0)"));
  const Told from("aten::rsub.Scalar", {4, 6}, {{1.0}}, {4, 6});
  EXPECT_THAT(from.text, HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x0, x1)\n        t1 = torch.ops.aten.add.Tensor(t0, x2)\n"));
  ASSERT_EQ(from.told.numbers.size(), 2U);
  EXPECT_EQ(from.told.numbers[0].second, -1);
  EXPECT_FALSE(Told("aten::add.Tensor", {4, 6}, {{2.0}}, {4, 6}, {{"alpha", {2.0}}}).told.changed);
  EXPECT_FALSE(Told("aten::clamp", {4, 6}, {{-1.0}, {1.0}}, {4, 6}).told.changed);
}

// A call of an input and another tensor.
struct OfTwo : Told {
  OfTwo(const std::string& op, const std::vector<int64_t>& sizes, const std::vector<int64_t>& second, std::vector<Arg> args, const std::vector<int64_t>& result)
      : Told("aten::relu", sizes, {}, result) {
    const auto other = value(second);
    auto& call = std::get<trace::Call>(forward.steps[0]);
    call.op = op, call.args.push_back({trace::TensorRef{other}});
    for (auto& arg : args) call.args.push_back(std::move(arg));
    told = taught_steps(trace, forward, {0});
    std::vector<trace::ValueId> inputs = {input, other};
    for (const auto& [id, number] : told.numbers) inputs.push_back(id);
    const auto whole = fragment_text(told.trace, told.forward, told.steps, inputs, {output});
    EXPECT_TRUE(whole.ok());
    if (whole.ok()) text = *whole;
  }
};

TEST(TaughtSteps, TheLargerOperandIsFirst) {
  EXPECT_THAT(OfTwo("aten::mul.Tensor", {6}, {4, 6}, {}, {4, 6}).text, HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x1, x0)\n"));
  EXPECT_FALSE(OfTwo("aten::sub.Tensor", {6}, {4, 6}, {}, {4, 6}).told.changed);
  EXPECT_FALSE(OfTwo("aten::mul.Tensor", {4, 6}, {6}, {}, {4, 6}).told.changed);
  EXPECT_THAT(OfTwo("aten::sub.Tensor", {2, 3, 4, 6}, {4, 6}, {}, {2, 3, 4, 6}).text,
              HasSubstr("        t0 = torch.ops.aten.view.default(x0, [6, 24])\n        t1 = torch.ops.aten.view.default(x1, [24])\n"
                        "        t2 = torch.ops.aten.sub.Tensor(t0, t1)\n        t3 = torch.ops.aten.view.default(t2, [2, 3, 4, 6])\n        return t3\n"));
  EXPECT_FALSE(OfTwo("aten::mul.Tensor", {2, 3, 4}, {3, 1}, {}, {2, 3, 4}).told.changed);
}

TEST(TaughtSteps, ABiasIsThere) {
  const OfTwo linear("aten::linear", {4, 6}, {8, 6}, {}, {4, 8});
  EXPECT_THAT(linear.text, HasSubstr("torch.ops.aten.linear.default(x0, x1, x2)"));
  EXPECT_THAT(linear.text, HasSubstr("        torch.randn(8),\n    ]"));
  ASSERT_EQ(linear.told.numbers.size(), 1U);
  EXPECT_EQ(linear.told.numbers[0].second, 0);
  const auto convolution = [&](bool turned) {
    return OfTwo("aten::convolution", {2, 6, 9}, {6, 4, 3}, {{trace::None{}}, ints({1}), ints({1}), ints({1}), {turned}, ints({0}), {int64_t{3}}}, {2, 6, 9});
  };
  EXPECT_THAT(convolution(false).text, HasSubstr("torch.ops.aten.convolution.default(x0, x1, x2, [1], [1], [1], False, [0], 3)"));
  EXPECT_THAT(convolution(false).text, HasSubstr("        torch.randn(6),\n    ]"));
  EXPECT_THAT(convolution(true).text, HasSubstr("        torch.randn(12),\n    ]"));
}

}  // namespace
}  // namespace nereid::search
