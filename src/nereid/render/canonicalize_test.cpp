#include "nereid/render/canonicalize.h"

#include <gmock/gmock.h>

#include <cmath>

#include "nereid/render/subgraph_source.h"

namespace nereid::render {
namespace {

using testing::HasSubstr;
using trace::Arg;

Arg ints(const std::vector<int64_t>& list) {
  trace::List items;
  for (const int64_t i : list) items.items.push_back({i});
  return {items};
}

// One call of an input, and its canonical steps.
struct Canonical {
  Canonical(const std::string& op, const std::vector<int64_t>& sizes, std::vector<Arg> args,
            const std::vector<int64_t>& result, std::vector<std::pair<std::string, Arg>> kwargs = {}) {
    input = value(sizes), output = value(result);
    trace::Call call{.op = op,
                     .args = {},
                     .kwargs = std::move(kwargs),
                     .result = {trace::TensorRef{output}},
                     .parts = {},
                     .place = {}};
    call.args.push_back({trace::TensorRef{input}});
    for (auto& arg : args) call.args.push_back(std::move(arg));
    forward.steps.emplace_back(std::move(call));
    canonical = canonical_steps(trace, forward, {0});
    std::vector<trace::ValueId> inputs = {input};
    for (const auto& [id, number] : canonical.numbers) inputs.push_back(id);
    const auto whole = subgraph_source(canonical.trace, canonical.forward, canonical.steps, inputs, {output});
    EXPECT_TRUE(whole.ok());
    if (whole.ok())
      text = whole->substr(whole->find("x0"), whole->find("        return t") - whole->find("x0"));
  }
  trace::ValueId value(const std::vector<int64_t>& sizes) {
    trace.storages.push_back(
        {.bytes = 4000, .role = trace::Role::kTemporary, .device = {}, .name = {}, .data = {}});
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
  CanonicalSteps canonical;
  std::string text;
};

TEST(CanonicalSteps, DimensionsAreCountedFromTheFront) {
  EXPECT_THAT(Canonical("aten::_softmax", {4, 6}, {{int64_t{-1}}, {false}}, {4, 6}).text,
              HasSubstr("t0 = torch.ops.aten._softmax.default(x0, 1, False)\n"));
  EXPECT_THAT(Canonical("aten::flip", {4, 6}, {ints({-2})}, {4, 6}).text,
              HasSubstr("t0 = torch.ops.aten.flip.default(x0, [0])\n"));
  const Canonical same("aten::cumsum", {4, 6}, {{int64_t{1}}}, {4, 6});
  EXPECT_FALSE(same.canonical.changed);
  EXPECT_THAT(same.text, HasSubstr("t0 = torch.ops.aten.cumsum.default(x0, 1)\n"));
  EXPECT_FALSE(
      Canonical("aten::cumsum", {4, 6}, {{int64_t{-3}}}, {4, 6}).canonical.changed);  // no dimension of it
}

TEST(CanonicalSteps, OneDimensionIsReducedOrAll) {
  EXPECT_THAT(Canonical("aten::amax", {4, 6}, {ints({-1})}, {4}).text,
              HasSubstr("        t0 = torch.ops.aten.amax.default(x0, [1])\n"));
  EXPECT_THAT(Canonical("aten::mean.dim", {9, 37, 16, 19}, {ints({2, 3})}, {9, 37}).text,
              HasSubstr("        t0 = torch.ops.aten.view.default(x0, [9, 37, 304])\n        t1 = "
                        "torch.ops.aten.mean.dim(t0, [2])\n"));
  EXPECT_THAT(Canonical("aten::mean.dim", {4, 6}, {ints({-1}), {true}}, {4, 1}).text,
              HasSubstr("        t0 = torch.ops.aten.mean.dim(x0, [1])\n        t1 = "
                        "torch.ops.aten.view.default(t0, [4, 1])\n"));
  EXPECT_THAT(Canonical("aten::var.correction", {4, 6},
                        {
                            ints({0}),
                        },
                        {1, 6}, {{"correction", {int64_t{1}}}, {"keepdim", {true}}})
                  .text,
              HasSubstr("t0 = torch.ops.aten.var.correction(x0, [0], correction=1)\n        t1 = "
                        "torch.ops.aten.view.default(t0, [1, 6])\n"));
  EXPECT_THAT(Canonical("aten::sum.dim_IntList", {4, 6}, {ints({0, 1})}, {}).text,
              HasSubstr("        t0 = torch.ops.aten.sum.default(x0)\n"));
  EXPECT_THAT(Canonical("aten::argmax", {4, 6}, {{int64_t{-1}}}, {4}).text,
              HasSubstr("        t0 = torch.ops.aten.argmax.default(x0, 1)\n"));
  EXPECT_FALSE(
      Canonical("aten::amax", {4, 6, 8}, {ints({0, 2})}, {6}).canonical.changed);  // not side by side
  EXPECT_FALSE(Canonical("aten::amax", {4, 6}, {ints({1})}, {4}).canonical.changed);
  EXPECT_FALSE(Canonical("aten::amax", {4, 6}, {}, {}).canonical.changed);
}

TEST(CanonicalSteps, NumbersAreTensors) {
  const Canonical scaled("aten::mul.Tensor", {4, 6}, {{2.5}}, {4, 6});
  ASSERT_EQ(scaled.canonical.numbers.size(), 1U);
  EXPECT_EQ(scaled.canonical.numbers[0].second, 2.5);
  EXPECT_THAT(scaled.text, HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x0, x1)\n"));
  EXPECT_THAT(Canonical("aten::neg", {4, 6}, {}, {4, 6}).text,
              HasSubstr("torch.ops.aten.mul.Tensor(x0, x1)"));
  EXPECT_THAT(Canonical("aten::clamp_min", {4, 6}, {{int64_t{0}}}, {4, 6}).text,
              HasSubstr("torch.ops.aten.maximum.default(x0, x1)"));
  EXPECT_THAT(Canonical("aten::clamp", {4, 6}, {{trace::None{}}, {3.0}}, {4, 6}).text,
              HasSubstr("torch.ops.aten.minimum.default(x0, x1)"));
  EXPECT_THAT(Canonical("aten::clamp", {4, 6}, {{int64_t{-20}}, {int64_t{20}}}, {4, 6}).text,
              HasSubstr("torch.ops.aten.clamp.default(x0, -20.0, 20.0)"));
  const Canonical from("aten::rsub.Scalar", {4, 6}, {{1.0}}, {4, 6});
  EXPECT_THAT(from.text, HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x0, x1)\n        t1 = "
                                   "torch.ops.aten.add.Tensor(t0, x2)\n"));
  ASSERT_EQ(from.canonical.numbers.size(), 2U);
  EXPECT_EQ(from.canonical.numbers[0].second, -1);
  EXPECT_FALSE(Canonical("aten::add.Tensor", {4, 6}, {{2.0}}, {4, 6}, {{"alpha", {2.0}}}).canonical.changed);
  EXPECT_FALSE(Canonical("aten::clamp", {4, 6}, {{-1.0}, {1.0}}, {4, 6}).canonical.changed);
}

// A call of an input and another tensor.
struct OfTwo : Canonical {
  OfTwo(const std::string& op, const std::vector<int64_t>& sizes, const std::vector<int64_t>& second,
        std::vector<Arg> args, const std::vector<int64_t>& result)
      : Canonical("aten::relu", sizes, {}, result) {
    const auto other = value(second);
    auto& call = std::get<trace::Call>(forward.steps[0]);
    call.op = op, call.args.push_back({trace::TensorRef{other}});
    for (auto& arg : args) call.args.push_back(std::move(arg));
    canonical = canonical_steps(trace, forward, {0});
    std::vector<trace::ValueId> inputs = {input, other};
    for (const auto& [id, number] : canonical.numbers) inputs.push_back(id);
    const auto whole = subgraph_source(canonical.trace, canonical.forward, canonical.steps, inputs, {output});
    EXPECT_TRUE(whole.ok());
    if (whole.ok()) text = *whole;
  }
};

TEST(CanonicalSteps, TheLargerOperandIsFirst) {
  EXPECT_THAT(OfTwo("aten::mul.Tensor", {6}, {4, 6}, {}, {4, 6}).text,
              HasSubstr("        t0 = torch.ops.aten.mul.Tensor(x1, x0)\n"));
  EXPECT_FALSE(OfTwo("aten::sub.Tensor", {6}, {4, 6}, {}, {4, 6}).canonical.changed);
  EXPECT_FALSE(OfTwo("aten::mul.Tensor", {4, 6}, {6}, {}, {4, 6}).canonical.changed);
  EXPECT_THAT(OfTwo("aten::sub.Tensor", {2, 3, 4, 6}, {4, 6}, {}, {2, 3, 4, 6}).text,
              HasSubstr("        t0 = torch.ops.aten.view.default(x0, [6, 24])\n        t1 = "
                        "torch.ops.aten.view.default(x1, [24])\n"
                        "        t2 = torch.ops.aten.sub.Tensor(t0, t1)\n        t3 = "
                        "torch.ops.aten.view.default(t2, [2, 3, 4, 6])\n        return t3\n"));
  EXPECT_FALSE(OfTwo("aten::mul.Tensor", {2, 3, 4}, {3, 1}, {}, {2, 3, 4}).canonical.changed);
}

TEST(CanonicalSteps, ABiasIsThere) {
  const OfTwo linear("aten::linear", {4, 6}, {8, 6}, {}, {4, 8});
  EXPECT_THAT(linear.text, HasSubstr("torch.ops.aten.linear.default(x0, x1, x2)"));
  EXPECT_THAT(linear.text, HasSubstr("        torch.randn(8),\n    ]"));
  ASSERT_EQ(linear.canonical.numbers.size(), 1U);
  EXPECT_EQ(linear.canonical.numbers[0].second, 0);
  const auto convolution = [&](bool turned) {
    return OfTwo("aten::convolution", {2, 6, 9}, {6, 4, 3},
                 {{trace::None{}}, ints({1}), ints({1}), ints({1}), {turned}, ints({0}), {int64_t{3}}},
                 {2, 6, 9});
  };
  EXPECT_THAT(convolution(false).text,
              HasSubstr("torch.ops.aten.convolution.default(x0, x1, x2, [1], [1], [1], False, [0], 3)"));
  EXPECT_THAT(convolution(false).text, HasSubstr("        torch.randn(6),\n    ]"));
  EXPECT_THAT(convolution(true).text, HasSubstr("        torch.randn(12),\n    ]"));
}

// Operators outside the catalogue, by their parts: one line each.
std::string parts_of(const std::string& text) {
  std::string parts;
  for (size_t at = text.find("torch.ops.aten."); at != text.npos; at = text.find("torch.ops.aten.", at + 1)) {
    const size_t begin = at + std::string_view("torch.ops.aten.").size();
    parts += text.substr(begin, text.find_first_of('\n', begin) - begin) + "\n";
  }
  return parts;
}

TEST(CanonicalSteps, OperatorsOutsideTheCatalogueInParts) {
  EXPECT_EQ(parts_of(OfTwo("aten::_prelu_kernel", {2, 3, 4}, {1, 3, 1}, {}, {2, 3, 4}).text),
            "relu.default(x0)\nsub.Tensor(x0, t0)\nmul.Tensor(t1, x1)\nadd.Tensor(t0, t2)\n");
  EXPECT_EQ(parts_of(OfTwo("aten::_prelu_kernel", {2, 3, 4}, {1, 1, 1}, {}, {2, 3, 4}).text),
            "view.default(x1, [1])\nrelu.default(x0)\nsub.Tensor(x0, t1)\nmul.Tensor(t2, t0)\nadd.Tensor(t1, "
            "t3)\n");
  EXPECT_EQ(parts_of(Canonical("aten::glu", {4, 6, 2}, {{int64_t{-2}}}, {4, 3, 2}).text),
            "split.Tensor(x0, 3, 1)\nsigmoid.default(t1)\nmul.Tensor(t0, t2)\n");
  EXPECT_EQ(parts_of(OfTwo("aten::huber_loss", {4, 6}, {4, 6}, {}, {}).text),
            "smooth_l1_loss.default(x0, x1)\n");
  const std::string far =
      "sub.Tensor(x0, x1)\nabs.default(t0)\nminimum.default(t1, x2)\nmul.Tensor(t2, x3)\nsub.Tensor(t1, "
      "t3)\n";
  EXPECT_EQ(parts_of(OfTwo("aten::huber_loss", {4, 6}, {4, 6}, {{int64_t{0}}, {2.0}}, {4, 6}).text),
            far + "mul.Tensor(t4, t2)\n");
  const OfTwo smooth("aten::smooth_l1_loss", {4, 6}, {4, 6}, {{int64_t{2}}, {4.0}}, {});
  EXPECT_EQ(parts_of(smooth.text), far + "mul.Tensor(t2, x4)\nmul.Tensor(t4, t5)\nsum.default(t6)\n");
  ASSERT_EQ(smooth.canonical.numbers.size(), 3U);
  EXPECT_EQ(smooth.canonical.numbers[0].second, 4);
  EXPECT_EQ(smooth.canonical.numbers[2].second, 0.25);
  EXPECT_FALSE(OfTwo("aten::smooth_l1_loss", {4, 6}, {4, 6}, {}, {}).canonical.changed);
  EXPECT_EQ(parts_of(OfTwo("aten::mse_loss", {4, 6}, {4, 6}, {{int64_t{0}}}, {4, 6}).text),
            "sub.Tensor(x0, x1)\npow.Tensor_Scalar(t0, 2)\n");
  EXPECT_FALSE(OfTwo("aten::mse_loss", {4, 6}, {4, 6}, {}, {}).canonical.changed);
  EXPECT_EQ(parts_of(OfTwo("aten::binary_cross_entropy_with_logits", {4, 6}, {4, 6}, {}, {}).text),
            "softplus.default(x0, 1.0)\nmul.Tensor(x0, x1)\nsub.Tensor(t0, t1)\nmean.default(t2)\n");
  EXPECT_EQ(parts_of(OfTwo("aten::masked_fill.Scalar", {4, 6}, {4, 6}, {{-INFINITY}}, {4, 6}).text),
            "where.self(x1, x2, x0)\n");
  EXPECT_EQ(parts_of(Canonical("aten::rms_norm", {4, 6}, {ints({6}), {trace::None{}}, {1e-5}}, {4, 6}).text),
            "rms_norm.default(x0, [6], x1, 1e-05)\n");
}

TEST(CanonicalSteps, LogarithmsAndProductsWithSomethingAdded) {
  const Canonical ten("aten::log10", {4, 6}, {}, {4, 6});
  EXPECT_EQ(parts_of(ten.text), "log.default(x0)\nmul.Tensor(t0, x1)\n");
  ASSERT_EQ(ten.canonical.numbers.size(), 1U);
  EXPECT_DOUBLE_EQ(ten.canonical.numbers[0].second * std::log(10.0), 1);
  EXPECT_DOUBLE_EQ(Canonical("aten::log2", {4, 6}, {}, {4, 6}).canonical.numbers.at(0).second * std::log(2.0),
                   1);
  EXPECT_FALSE(Canonical("aten::log10", {}, {}, {}).canonical.changed);  // a single number
  EXPECT_EQ(parts_of(Canonical("aten::atanh", {4, 6}, {}, {4, 6}).text),
            "mul.Tensor(x0, x1)\nlog1p.default(x0)\nlog1p.default(t0)\nsub.Tensor(t1, t2)\nmul.Tensor(t3, "
            "x2)\n");
  EXPECT_EQ(parts_of(OfTwo("aten::logaddexp", {4, 6}, {4, 6}, {}, {4, 6}).text),
            "sub.Tensor(x0, x1)\nabs.default(t0)\nmul.Tensor(t1, x2)\nsoftplus.default(t2, 1.0)\n"
            "maximum.default(x0, x1)\nadd.Tensor(t4, t3)\n");
  EXPECT_FALSE(OfTwo("aten::logaddexp", {4, 6}, {6}, {}, {4, 6}).canonical.changed);
  EXPECT_EQ(parts_of(OfTwo("aten::mv", {4, 6}, {6}, {}, {4}).text),
            "mul.Tensor(x0, x1)\nsum.dim_IntList(t0, [1])\n");
  EXPECT_EQ(
      parts_of(OfTwo("aten::_cdist_forward", {5, 4, 6}, {5, 3, 6}, {{1.0}, {trace::None{}}}, {5, 4, 3}).text),
      "view.default(x0, [5, 4, 1, 6])\nview.default(x1, [5, 1, 3, 6])\nsub.Tensor(t0, t1)\n"
      "linalg_vector_norm.default(t2, 1.0, [3])\n");
  EXPECT_FALSE(OfTwo("aten::_cdist_forward", {5, 4, 6}, {1, 3, 6}, {{2.0}}, {5, 4, 3}).canonical.changed);
}

TEST(CanonicalSteps, ProductsWithSomethingAdded) {
  const auto parts = [](const std::string& op, std::vector<int64_t> a, std::vector<int64_t> b,
                        std::vector<int64_t> result,
                        std::vector<std::pair<std::string, Arg>> kwargs = {}) -> std::string {
    Canonical sum(op, result, {}, result, std::move(kwargs));
    auto& call = std::get<trace::Call>(sum.forward.steps[0]);
    for (const auto& sizes : {std::move(a), std::move(b)})
      call.args.push_back({trace::TensorRef{sum.value(sizes)}});
    const auto canonical = canonical_steps(sum.trace, sum.forward, {0});
    std::string ops;
    for (const size_t step : canonical.steps)
      ops += std::get<trace::Call>(canonical.forward.steps[step]).op + " ";
    return ops;
  };
  EXPECT_EQ(parts("aten::addmm", {4, 6}, {6, 5}, {4, 5}), "aten::mm aten::add.Tensor ");
  EXPECT_EQ(parts("aten::baddbmm", {2, 4, 6}, {2, 6, 5}, {2, 4, 5}), "aten::bmm aten::add.Tensor ");
  EXPECT_EQ(parts("aten::addcmul", {4, 5}, {4, 5}, {4, 5}, {{"value", {0.5}}}),
            "aten::mul.Tensor aten::mul.Tensor aten::add.Tensor ");
  EXPECT_EQ(parts("aten::addcdiv", {4, 5}, {4, 5}, {4, 5}), "aten::div.Tensor aten::add.Tensor ");
  EXPECT_EQ(parts("aten::addmm", {4, 6}, {6, 5}, {4, 5}, {{"beta", {0.5}}}), "aten::addmm ");
  EXPECT_EQ(parts("aten::addcmul", {5}, {4, 5}, {4, 5}), "aten::addcmul ");
}

TEST(CanonicalSteps, ANumberAboveZeroIsDrawnSo) {
  EXPECT_THAT(OfTwo("aten::huber_loss", {4, 6}, {4, 6}, {{int64_t{0}}, {2.0}}, {4, 6}).text,
              HasSubstr("        torch.rand(1),\n"));
  EXPECT_THAT(OfTwo("aten::linear", {4, 6}, {8, 6}, {}, {4, 8}).text, HasSubstr("        torch.randn(8),\n"));
}

TEST(CanonicalSteps, PartsOfDeviations) {
  const auto with = [](double correction) {
    return std::vector<std::pair<std::string, Arg>>{{"correction", {correction}}, {"keepdim", {true}}};
  };
  EXPECT_EQ(parts_of(Canonical("aten::std.correction", {4, 6}, {ints({-1})}, {4, 1}, with(1)).text),
            "var.correction(x0, [1], correction=1)\nview.default(t0, [4, 1])\nsqrt.default(t1)\n");
  const Canonical population("aten::std.correction", {4, 6}, {ints({0, 1})}, {},
                             {{"correction", {int64_t{0}}}});
  EXPECT_EQ(parts_of(population.text), "var.correction(x0)\nmul.Tensor(t0, x1)\nsqrt.default(t1)\n");
  ASSERT_EQ(population.canonical.numbers.size(), 1U);
  EXPECT_DOUBLE_EQ(population.canonical.numbers[0].second, 23.0 / 24);
  EXPECT_EQ(
      parts_of(Canonical("aten::var.correction", {4, 6}, {ints({1})}, {4}, {{"correction", {0.0}}}).text),
      "var.correction(x0, [1], correction=1)\nmul.Tensor(t0, x1)\n");
  EXPECT_FALSE(Canonical("aten::var.correction", {4, 1}, {ints({1})}, {4}, {{"correction", {int64_t{0}}}})
                   .canonical.changed);  // corrected, it is of nothing
  EXPECT_FALSE(Canonical("aten::var.correction", {4, 6}, {ints({1})}, {4}, {{"correction", {int64_t{1}}}})
                   .canonical.changed);
}

TEST(CanonicalSteps, PartsOfNorms) {
  const OfTwo norm("aten::instance_norm", {2, 3, 4}, {3},
                   {{trace::None{}}, {trace::None{}}, {trace::None{}}, {true}, {0.1}, {1e-5}, {true}},
                   {2, 3, 4});
  EXPECT_FALSE(norm.canonical.changed);  // no bias
  OfTwo eval("aten::batch_norm", {2, 3, 4}, {3},
             {{trace::None{}}, {trace::None{}}, {trace::None{}}, {false}, {0.1}, {1e-5}, {true}}, {2, 3, 4});
  auto& call = std::get<trace::Call>(eval.forward.steps[0]);
  call.args[3] = call.args[4] = call.args[2] = call.args[1];
  const auto canonical = canonical_steps(eval.trace, eval.forward, {0});
  std::vector<std::string> ops;
  for (const size_t step : canonical.steps)
    ops.push_back(std::get<trace::Call>(canonical.forward.steps[step]).op);
  EXPECT_THAT(ops, testing::ElementsAre("aten::add.Tensor", "aten::rsqrt", "aten::view", "aten::sub.Tensor",
                                        "aten::mul.Tensor", "aten::view", "aten::mul.Tensor", "aten::view",
                                        "aten::add.Tensor"));
  call.op = "aten::instance_norm";
  call.args[5] = {true};
  const auto weighed = canonical_steps(eval.trace, eval.forward, {0});
  ops.clear();
  for (const size_t step : weighed.steps)
    ops.push_back(std::get<trace::Call>(weighed.forward.steps[step]).op);
  EXPECT_THAT(ops, testing::ElementsAre("aten::instance_norm", "aten::view", "aten::mul.Tensor", "aten::view",
                                        "aten::add.Tensor"));
}

TEST(CanonicalSteps, AnExtremumIsItsValueWhereItsIndexIsUnused) {
  Canonical canonical("aten::relu", {4, 6}, {}, {4});
  auto& call = std::get<trace::Call>(canonical.forward.steps[0]);
  const auto places = canonical.value({4});
  call.op = "aten::max.dim", call.args.push_back({int64_t{-1}});
  trace::List both;
  both.items = {{trace::TensorRef{canonical.output}}, {trace::TensorRef{places}}};
  call.result = {both};
  const auto op = [&] {
    return std::get<trace::Call>(
               canonical_steps(canonical.trace, canonical.forward, {0}).forward.steps.back())
        .op;
  };
  EXPECT_EQ(op(), "aten::amax");
  canonical.forward.output = {trace::TensorRef{places}};
  EXPECT_EQ(op(), "aten::max.dim");
}

}  // namespace
}  // namespace nereid::render
