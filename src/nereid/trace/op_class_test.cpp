#include "nereid/trace/op_class.h"

#include <gtest/gtest.h>

#include "nereid/trace/op_table.h"
#include "tests/support/trace_sketch.h"

namespace nereid::trace {
namespace {

TEST(OpName, IsTakenApart) {
  const OpName plain = split_name("aten::relu");
  EXPECT_EQ(plain.space, "aten");
  EXPECT_EQ(plain.name, "relu");
  EXPECT_EQ(plain.overload, "");
  EXPECT_FALSE(plain.in_place);
  const OpName in_place = split_name("aten::add_.Tensor");
  EXPECT_EQ(in_place.name, "add");
  EXPECT_EQ(in_place.overload, "Tensor");
  EXPECT_TRUE(in_place.in_place);
  EXPECT_FALSE(split_name("aten::__and__.Tensor").in_place);
}

TEST(OpClass, NamesWhatEverybodyKnows) {
  for (const auto& [op, expected] : std::vector<std::pair<std::string, OpClass>>{
           {"aten::add.Tensor", OpClass::kPointwise},
           {"aten::add_.Tensor", OpClass::kPointwise},
           {"aten::relu", OpClass::kPointwise},
           {"aten::native_layer_norm", OpClass::kNormalisation},
           {"aten::_softmax", OpClass::kNormalisation},
           {"aten::batch_norm", OpClass::kNormalisation},
           {"aten::linear", OpClass::kContraction},
           {"aten::addmm", OpClass::kContraction},
           {"aten::baddbmm_", OpClass::kContraction},
           {"aten::convolution", OpClass::kConvolution},
           {"aten::scaled_dot_product_attention", OpClass::kAttention},
           {"aten::lstm.input", OpClass::kRecurrent},
           {"aten::max_pool2d_with_indices", OpClass::kPooling},
           {"aten::upsample_bilinear2d.vec", OpClass::kPooling},
           {"aten::sum.dim_IntList", OpClass::kReduction},
           {"aten::max.dim", OpClass::kReduction},
           {"aten::max.other", OpClass::kPointwise},
           {"aten::scatter.src", OpClass::kIndexing},
           {"aten::scatter.reduce", OpClass::kReduction},
           {"aten::scatter_.reduce", OpClass::kReduction},
           {"aten::scatter_add_", OpClass::kReduction},
           {"aten::_euclidean_dist", OpClass::kContraction},
           {"aten::linspace", OpClass::kFill},
           {"aten::linspace.Tensor_Tensor", OpClass::kPointwise},
           {"aten::logspace.Scalar_Tensor", OpClass::kPointwise},
           {"aten::repeat_interleave.self_int", OpClass::kCopy},
           {"aten::repeat_interleave.Tensor", OpClass::kIndexing},
           {"aten::cumsum", OpClass::kScan},
           {"aten::topk", OpClass::kSort},
           {"aten::embedding", OpClass::kIndexing},
           {"aten::index.Tensor", OpClass::kIndexing},
           {"aten::cat", OpClass::kConcatenation},
           {"aten::clone", OpClass::kCopy},
           {"aten::constant_pad_nd", OpClass::kCopy},
           {"aten::_to_copy", OpClass::kCast},
           {"aten::zeros", OpClass::kFill},
           {"aten::arange.start_step", OpClass::kFill},
           {"aten::empty.memory_format", OpClass::kAllocation},
           {"aten::view", OpClass::kView},
           {"aten::as_strided", OpClass::kView},
           {"aten::randn", OpClass::kRandom},
           {"aten::normal_", OpClass::kRandom},
           {"aten::sigmoid_backward", OpClass::kPointwise},
           {"aten::convolution_backward", OpClass::kConvolution},
           {"aten::native_layer_norm_backward", OpClass::kNormalisation},
           {"aten::_fft_r2c", OpClass::kOther},
           {"nereid::manual_seed", OpClass::kQuery},
           {"torchvision::nms", OpClass::kOther},
           {"aten::an_operator_of_tomorrow", OpClass::kOther}})
    EXPECT_EQ(to_string(listed_class(op)), to_string(expected)) << op;
}

TEST(OpClass, OnlyWorkOnIntegersIsBookkeeping) {
  Sketch sketch;
  const ValueId i = sketch.tensor({8}, DType::kI64), j = sketch.tensor({8}, DType::kI64);
  const ValueId x = sketch.tensor({8}), mask = sketch.tensor({8}, DType::kBool);
  const ValueId bits = sketch.reinterpret(x, DType::kI32), clamped = sketch.tensor({8}, DType::kI32);
  const ValueId table = sketch.tensor({4, 4}), rows = sketch.tensor({8, 4});
  const OpFacts facts(sketch.trace);
  const auto classify = [&](std::string op, const std::vector<ValueId>& args, ValueId result) {
    std::vector<Arg> list;
    for (const ValueId id : args) list.push_back(tensor_arg(id));
    return to_string(facts.classify(make_call(std::move(op), list, tensor_arg(result))));
  };
  EXPECT_EQ(classify("aten::add.Tensor", {i, i}, j), "index bookkeeping");
  EXPECT_EQ(classify("aten::cumsum", {i}, j), "index bookkeeping");
  EXPECT_EQ(classify("aten::sort", {i}, j), "index bookkeeping");
  EXPECT_EQ(classify("aten::gt.Scalar", {x}, mask), "pointwise");    // looks at floating-point data
  EXPECT_EQ(classify("aten::clamp", {bits}, clamped), "pointwise");  // floats in disguise
  EXPECT_EQ(classify("aten::_int_mm", {i, i}, j), "contraction");    // integers, but no bookkeeping
  EXPECT_EQ(classify("aten::embedding", {table, i}, rows), "indexing");
}

TEST(OpClass, SeesWhatACallReallyDid) {
  Sketch sketch;
  const ValueId x = sketch.tensor({2, 4}), y = sketch.tensor({2, 4}), loss = sketch.tensor({});
  const ValueId turned = sketch.view(x, {4, 2}, {1, 4}), flat = sketch.tensor({8});
  const OpFacts facts(sketch.trace);
  const auto x_arg = tensor_arg(x);
  // reshape: a view, or a copy where the strides do not allow one
  EXPECT_EQ(facts.classify(make_call("aten::reshape", {x_arg}, tensor_arg(turned))), OpClass::kView);
  EXPECT_EQ(facts.classify(make_call("aten::reshape", {x_arg}, tensor_arg(flat))), OpClass::kCopy);
  // to() that has nothing to do, dropout that is off
  EXPECT_EQ(facts.classify(make_call("aten::to.dtype", {x_arg}, x_arg)), OpClass::kView);
  EXPECT_EQ(facts.classify(make_call("aten::dropout", {x_arg}, x_arg)), OpClass::kView);
  EXPECT_EQ(facts.classify(make_call("aten::relu_", {x_arg}, x_arg)), OpClass::kPointwise);
  // a loss that is not reduced
  EXPECT_EQ(facts.classify(make_call("aten::mse_loss", {x_arg, tensor_arg(y)}, tensor_arg(loss))),
            OpClass::kReduction);
  EXPECT_EQ(facts.classify(make_call("aten::mse_loss", {x_arg, x_arg}, tensor_arg(y))), OpClass::kPointwise);
  // a composite is as serious as its parts
  Call composite = make_call("aten::log_sigmoid", {x_arg}, tensor_arg(y));
  EXPECT_EQ(facts.classify(composite), OpClass::kPointwise);
  composite.parts = {"aten::t", "aten::mm"};
  EXPECT_EQ(facts.classify(composite), OpClass::kContraction);
  composite.parts = {"mine::secret"};
  EXPECT_EQ(facts.classify(composite), OpClass::kOther);
  // an unknown operator is work even where it seems to do nothing
  EXPECT_EQ(facts.classify(make_call("mine::secret", {x_arg}, x_arg)), OpClass::kOther);
}

TEST(OpClass, PoliciesSeeTheOrder) {
  EXPECT_TRUE(is_free(OpClass::kBookkeeping));
  EXPECT_TRUE(is_free(OpClass::kConcatenation));
  EXPECT_FALSE(is_free(OpClass::kRandom));
  EXPECT_TRUE(may_be_small(OpClass::kPointwise));
  EXPECT_FALSE(may_be_small(OpClass::kReduction));
  EXPECT_FALSE(may_be_small(OpClass::kOther));
}

}  // namespace
}  // namespace nereid::trace
