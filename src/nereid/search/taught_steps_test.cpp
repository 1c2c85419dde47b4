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

}  // namespace
}  // namespace nereid::search
