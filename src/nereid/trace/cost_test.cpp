#include "nereid/trace/cost.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::trace {
namespace {

class CostTest : public ::testing::Test {
 protected:
  Arg tensor(std::vector<int64_t> sizes, DType dtype = DType::kF32) {
    return tensor_arg(sketch.tensor(std::move(sizes), dtype));
  }
  Cost of(std::string op, std::vector<Arg> args, Arg result) {
    return cost_of(sketch.trace, make_call(std::move(op), std::move(args), std::move(result)));
  }
  static Arg ints(std::vector<int64_t> numbers) {
    List list;
    for (const int64_t n : numbers) list.items.push_back(Arg{n});
    return Arg{list};
  }
  Sketch sketch;
};

TEST_F(CostTest, ContractionsCountTwoForEachProduct) {
  EXPECT_EQ(of("aten::mm", {tensor({3, 5}), tensor({5, 7})}, tensor({3, 7})).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(of("aten::bmm", {tensor({2, 3, 5}), tensor({2, 5, 7})}, tensor({2, 3, 7})).flops,
            2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(of("aten::addmm", {tensor({7}), tensor({3, 5}), tensor({5, 7})}, tensor({3, 7})).flops,
            2 * 3 * 5 * 7);
  EXPECT_EQ(of("aten::linear", {tensor({2, 3, 5}), tensor({7, 5}), Arg{}}, tensor({2, 3, 7})).flops,
            2 * 6 * 5 * 7);
  EXPECT_EQ(of("aten::dot", {tensor({5}), tensor({5})}, tensor({})).flops, 10);
}

TEST_F(CostTest, ConvolutionsCountTheirGroupsAndDirection) {
  const std::vector<Arg> rest = {Arg{}, ints({1, 1}), ints({0, 0}), ints({1, 1})};
  auto args = [&](Arg input, Arg weight, bool transposed, int64_t groups) {
    std::vector<Arg> all = {input, weight};
    all.insert(all.end(), rest.begin(), rest.end());
    all.push_back(Arg{transposed}), all.push_back(ints({0, 0})), all.push_back(Arg{groups});
    return all;
  };
  EXPECT_EQ(of("aten::convolution", args(tensor({2, 4, 8, 8}), tensor({6, 4, 3, 3}), false, 1),
               tensor({2, 6, 6, 6}))
                .flops,
            2.0 * 2 * 36 * 6 * 4 * 9);
  EXPECT_EQ(of("aten::convolution", args(tensor({2, 4, 8, 8}), tensor({4, 1, 3, 3}), false, 4),
               tensor({2, 4, 6, 6}))
                .flops,
            2.0 * 2 * 36 * 4 * 9);
  EXPECT_EQ(of("aten::convolution", args(tensor({2, 4, 8, 8}), tensor({4, 6, 3, 3}), true, 1),
               tensor({2, 6, 10, 10}))
                .flops,
            2.0 * 2 * 64 * 6 * 4 * 9);
}

TEST_F(CostTest, AttentionIsTwoProducts) {
  EXPECT_EQ(of("aten::scaled_dot_product_attention",
               {tensor({2, 4, 16, 8}), tensor({2, 4, 32, 8}), tensor({2, 4, 32, 10})}, tensor({2, 4, 16, 10}))
                .flops,
            2.0 * 2 * 4 * 16 * 32 * (8 + 10));
}

TEST_F(CostTest, RecurrentLayersCountTheirWeights) {
  List weights;
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{12, 5}, {12, 3}, {12}, {12}})
    weights.items.push_back(tensor(sizes));
  EXPECT_EQ(of("aten::lstm.input", {tensor({7, 2, 5}), Arg{}, Arg{weights}}, tensor({7, 2, 3})).flops,
            2.0 * 14 * (12 * 5 + 12 * 3));
}

TEST_F(CostTest, BytesAreDistinctBytes) {
  const ValueId x = sketch.tensor({4, 1});
  const Arg expanded = tensor_arg(sketch.view(x, {4, 1000}, {1, 0}));
  const Cost add = of("aten::add.Tensor", {expanded, expanded}, tensor({4, 1000}));
  EXPECT_EQ(add.bytes_read, 16);
  EXPECT_EQ(add.bytes_written, 16000);
  EXPECT_EQ(add.flops, 4000);
  const ValueId wide = sketch.tensor({8, 8});
  const Arg column = tensor_arg(sketch.view(wide, {8}, {8}, 2));
  EXPECT_EQ(of("aten::relu", {column}, tensor({8})).bytes_read, 32);
  // A lookup reads the rows it takes, and the indices.
  EXPECT_EQ(of("aten::embedding", {tensor({1000, 4}), tensor({6}, DType::kI64)}, tensor({6, 4})).bytes_read,
            6 * 4 * 4 + 48);
  // Views cost nothing.
  EXPECT_EQ(of("aten::t", {tensor_arg(wide)}, tensor_arg(sketch.view(wide, {8, 8}, {1, 8}))).bytes(), 0);
}

TEST_F(CostTest, TotalsKeepTritonAndTheRestApart) {
  const ValueId x = sketch.tensor({64}), y = sketch.tensor({64}), z = sketch.tensor({64}),
                c = sketch.tensor({64});
  sketch.phase(PhaseKind::kForward);
  sketch.step(make_call("aten::clone", {tensor_arg(x)}, tensor_arg(c)));
  sketch.step(make_call("aten::relu", {tensor_arg(c)}, tensor_arg(y)));
  sketch.step(make_call("aten::empty_like", {tensor_arg(c)}, tensor_arg(z)));
  sketch.step(make_launch(sketch.kernel(), {y, z}));
  const auto costs = costs_of(sketch.trace, sketch.trace.phases[0], [](const Trace&, const Alternative&) {
    return Cost{.flops = 640, .bytes_read = 256, .bytes_written = 256};
  });
  const Totals totals = totals_of(costs);
  EXPECT_EQ(totals.calls, 3);
  EXPECT_EQ(totals.launch_count, 1);
  EXPECT_EQ(totals.free_calls.bytes(), 512);
  EXPECT_EQ(totals.other_calls.flops, 64);
  EXPECT_EQ(totals.launches.flops, 640);
  EXPECT_EQ(totals.all().bytes(), 1536);
  EXPECT_FALSE(totals_of(costs_of(sketch.trace, sketch.trace.phases[0], {})).launches.exact);
}

}  // namespace
}  // namespace nereid::trace
