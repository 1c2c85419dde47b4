#include "nereid/compiler/output/trace_summary.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::compiler {
namespace {

using trace::make_call;
using trace::tensor_arg;

trace::Arg whole(int64_t number) { return trace::Arg{number}; }

class TraceSummaryTest : public ::testing::Test {
 protected:
  TraceSummaryTest() { sketch_.phase(trace::PhaseKind::kForward).inputs = trace::tuple_of({x_}); }
  void step(const char* op, std::vector<trace::Arg> args, trace::ValueId result) {
    sketch_.step(make_call(op, std::move(args), tensor_arg(result)));
  }
  std::string summary(trace::ValueId output) {
    sketch_.trace.phases.back().output = tensor_arg(output);
    return trace_summary(sketch_.trace, "");
  }
  trace::Sketch sketch_;
  trace::ValueId x_ = sketch_.tensor({8, 20, 16});
};

TEST_F(TraceSummaryTest, ViewsSayWhereTheirElementsLie) {
  const auto turned = sketch_.view(x_, {8, 16, 20}, {320, 1, 16});
  const auto some = sketch_.view(x_, {8, 3, 16}, {320, 16, 1}, 32);
  const auto flat = sketch_.view(x_, {160, 16}, {16, 1});
  const auto one = sketch_.view(x_, {8, 1, 16}, {320, 320, 1}, 16);
  const auto last = sketch_.view(x_, {4, 10, 8}, {320, 16, 1}, 4 * 320 + 10 * 16 + 8);
  step("aten::transpose.int", {tensor_arg(x_), whole(1), whole(2)}, turned);
  step("aten::slice.Tensor", {tensor_arg(x_), whole(1), whole(2), whole(5)}, some);
  step("aten::view", {tensor_arg(x_)}, flat);
  step("aten::slice.Tensor", {tensor_arg(x_), whole(1), whole(1), whole(2)}, one);
  step("aten::slice.Tensor", {tensor_arg(x_), whole(2), whole(8)}, last);
  EXPECT_EQ(summary(one),
            "#1 transpose(constant, 1, 2) [8, 16, 20] strides 20 * 16, 1, 16\n"
            "#2 slice(constant, 1, 2, 5) [8, 3, 16] strides 20 * 16, 16, 1 from 2 * 16\n"
            "#3 view(constant) [160, 16]\n"
            "#4 slice(constant, 1, 1, 2) [8, 1, 16] strides 20 * 16, 0, 1 from 16\n"
            "#5 slice(constant, 2, 8) [4, 10, 8] strides 20 * 16, 16, 1 from 4 * 20 * 16 + 10 * 16 + 8\n"
            "returns #4\n");
}

// What PyTorch lays out otherwise is laid out in order by a kernel, so its views' strides would mislead.
TEST_F(TraceSummaryTest, OnlyOfWhatLiesInOrder) {
  const auto made = sketch_.tensor({8, 16, 20});
  sketch_.trace.values[static_cast<size_t>(made)].strides = {320, 1, 16};
  const auto some = sketch_.view(made, {8, 16, 2}, {320, 1, 16});
  step("aten::exp", {tensor_arg(x_)}, made);
  step("aten::slice.Tensor", {tensor_arg(made), whole(2), whole(0), whole(2)}, some);
  EXPECT_EQ(summary(some), "#1 exp(constant) [8, 16, 20]\n#2 slice(#1, 2, 0, 2) [8, 16, 2]\nreturns #2\n");
}

TEST_F(TraceSummaryTest, FlagsThatMakeAnotherKernel) {
  const auto flag = [](bool on) { return trace::Arg{on}; };
  const auto made = sketch_.tensor({8, 20, 8}), other = sketch_.tensor({8, 20, 8}),
             last = sketch_.tensor({8, 20, 16});
  const trace::Arg two = {trace::List{.items = {whole(2)}, .tuple = false}}, none = {trace::None{}};
  step("aten::avg_pool1d", {tensor_arg(x_), two, two, two, flag(true), flag(false)}, made);
  step("aten::max_pool1d", {tensor_arg(x_), two, two, two, two, flag(true)}, other);
  step("aten::clamp", {tensor_arg(other), none, whole(1)}, last);
  step("aten::scaled_dot_product_attention",
       {tensor_arg(x_), tensor_arg(x_), tensor_arg(x_), none, whole(0), flag(true)}, last);
  EXPECT_EQ(summary(last),
            "#1 avg_pool1d(constant, [2], [2], [2], ceil_mode, count_include_pad=False) [8, 20, 8]\n"
            "#2 max_pool1d(constant, [2], [2], [2], [2], ceil_mode) [8, 20, 8]\n"
            "#3 clamp(#2, none, 1) [8, 20, 16]\n"
            "#4 scaled_dot_product_attention(constant, constant, constant, 0, is_causal) [8, 20, 16]\n"
            "returns #4\n");
}

// Arguments and state by the order of their use; what sizes follow from, and nothing that could mislead.
TEST_F(TraceSummaryTest, BeginsWithTheSizesOfWhatIsGiven) {
  const auto flag = [](bool on) { return trace::Arg{on}; };
  const trace::Arg two = {trace::List{.items = {whole(2)}, .tuple = false}}, none = {trace::None{}};
  const auto y = sketch_.tensor({8, 20, 16}), weight = sketch_.tensor({20, 4, 2}),
             turned_input = sketch_.tensor({16, 20});
  sketch_.trace.values[static_cast<size_t>(turned_input)].strides = {1, 16};
  const auto weight_view = sketch_.view(weight, {4, 20, 2}, {2, 8, 1});
  sketch_.trace.phases.back().inputs = trace::tuple_of({x_, y, turned_input});
  const auto made = sketch_.tensor({8, 4, 32}), mean = sketch_.tensor({8, 4, 1}),
             sum = sketch_.tensor({8, 4}), top = sketch_.tensor({8, 20, 16});
  step("aten::convolution",
       {tensor_arg(y), tensor_arg(weight), none, two, two, two, flag(true), two, whole(1)}, made);
  step("aten::convolution",
       {tensor_arg(y), tensor_arg(weight), none, two, two, two, flag(false), two, whole(1)}, made);
  step("aten::mean.dim", {tensor_arg(made), two, flag(true)}, mean);
  step("aten::sum.dim_IntList", {tensor_arg(made), two, flag(false)}, sum);
  step("aten::maximum", {tensor_arg(x_), tensor_arg(y)}, top);
  step("aten::max.other", {tensor_arg(x_), tensor_arg(y)}, top);
  step("aten::mul.Tensor", {tensor_arg(x_), tensor_arg(turned_input)}, top);
  const auto text = [&] {
    sketch_.trace.phases.back().output = tensor_arg(top);
    return trace_summary(sketch_.trace, "class Model:\n    def forward(self, x, y, z):\n        return x\n");
  };
  sketch_.trace.class_name = "Model";
  sketch_.trace.state.push_back({.name = "up.weight", .value = weight});
  EXPECT_EQ(text(),
            "given y [8, 20, 16], up_weight [20, 4, 2], x [8, 20, 16]\n"
            "#1 convolution(y, up_weight, [2], [2], [2], [2], 1, transposed) [8, 4, 32]\n"
            "#2 convolution(y, up_weight, [2], [2], [2], [2], 1) [8, 4, 32]\n"
            "#3 mean(#2, [2], keepdim) [8, 4, 1]\n"
            "#4 sum(#2, [2]) [8, 4]\n"
            "#5 maximum(x, y) [8, 20, 16]\n"
            "#6 max(x, y) [8, 20, 16]\n"
            "#7 mul(x, z) [8, 20, 16]\n"
            "returns #7\n");
  // A step that writes to what it is given: the given tensor has its own name, later ones the step's.
  const auto count = sketch_.tensor({});
  sketch_.trace.state.push_back({.name = "count", .value = count});
  step("aten::add_.Scalar", {tensor_arg(count), whole(1)}, count);
  step("aten::mul.Tensor", {tensor_arg(x_), tensor_arg(count)}, top);
  EXPECT_TRUE(text().starts_with("given y [8, 20, 16], up_weight [20, 4, 2], x [8, 20, 16], count []\n"))
      << text();
  EXPECT_NE(text().find("#8 add_(count, 1) []\n#9 mul(x, #8) [8, 20, 16]\n"), std::string::npos) << text();
  // Two tensors of one name.
  step("aten::mul.Tensor", {tensor_arg(weight_view), whole(2)}, top);
  EXPECT_TRUE(text().starts_with("given y [8, 20, 16], x [8, 20, 16], count []\n")) << text();
}

}  // namespace
}  // namespace nereid::compiler
