// How a hostile trace is refused before anything of it runs.
#include "nereid/replay/worker/prepared_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/program.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;

Arg text(std::string words) { return Arg{Text{std::move(words)}}; }
Arg numbers(std::vector<int64_t> items) {
  List list;
  for (const auto item : items) list.items.push_back(Arg{item});
  return Arg{std::move(list)};
}

class PreparedCallTest : public testing::Test {
 protected:
  PreparedCallTest() : x(s.tensor({4, 4})), i(s.tensor({4}, DType::kI64)), out(s.tensor({4, 4})) {}

  // What `prepare` refuses a call with; empty where it does not.
  std::string refusal(const Call& call) const {
    try {
      PreparedCall::prepare(call, s.trace, *machine);
    } catch (const Failed& failed) {
      EXPECT_EQ(failed.kind, Failure::Kind::kRefused) << call.op;
      return failed.what();
    }
    return "";
  }
  std::string refusal(const std::string& op, std::vector<Arg> args) const {
    return refusal(make_call(op, std::move(args), tensor_arg(out)));
  }

  Sketch s;
  const ValueId x, i, out;
  const std::unique_ptr<Machine> machine = make_cpu_machine();
};

TEST_F(PreparedCallTest, AnOperatorThatIsOnNoListIsRefused) {
  EXPECT_EQ(refusal("aten::from_file", {text("/etc/passwd"), Arg{false}, Arg{int64_t{16}}}),
            "aten::from_file is not run by a replay");
  EXPECT_EQ(refusal("aten::_cudnn_init_dropout_state", {Arg{0.5}, Arg{true}, Arg{int64_t{1}}}),
            "aten::_cudnn_init_dropout_state is not run by a replay");
  EXPECT_EQ(refusal("aten::sparse_coo_tensor.indices", {tensor_arg(i), tensor_arg(x)}),
            "aten::sparse_coo_tensor.indices is not run by a replay");
  EXPECT_EQ(refusal("aten::add.Nonsense", {tensor_arg(x)}), "unknown operator aten::add.Nonsense");
  EXPECT_EQ(refusal("aten::", {}), "unknown operator aten::");
  for (const std::string op :
       {"prim::device", "prim::NumToTensor.Scalar", "profiler::_record_function_enter_new",
        "quantized::linear_prepack", "c10d::barrier", "mkldnn::_linear_pointwise",
        "xnnpack::linear_clamp_run", "_quantized::linear_prepack_fp16", "inductor::_alloc_from_pool",
        "torchvision::nms", "", " ", "::", "nereid::tf32 prim::device"})
    EXPECT_NE(refusal(op, {}).find(" is no ATen operator"), std::string::npos)
        << op << ": " << refusal(op, {});
  EXPECT_EQ(refusal("nereid::exec", {text("id")}), "unknown operator nereid::exec");
}

TEST_F(PreparedCallTest, ArgumentsAreOfTheNumberAndTheTypesOfTheSchema) {
  const auto add = [&](std::vector<Arg> args) { return refusal("aten::add.Tensor", std::move(args)); };
  EXPECT_EQ(add({tensor_arg(x), tensor_arg(x)}), "");
  EXPECT_EQ(add({tensor_arg(x)}), "the argument 'other' is missing");
  EXPECT_EQ(add({tensor_arg(x), tensor_arg(x), Arg{int64_t{1}}, Arg{int64_t{1}}}),
            "too many arguments for aten::add.Tensor");
  EXPECT_EQ(add({tensor_arg(x), text("x")}), "argument 'other': expected Tensor, got text");
  EXPECT_EQ(add({tensor_arg(x), tensor_arg(x), tensor_arg(x)}),
            "argument 'alpha': expected Scalar, got a tensor");
  auto call = make_call("aten::relu", {tensor_arg(x)}, tensor_arg(out));
  call.kwargs.emplace_back("file", text("/etc/passwd"));
  EXPECT_EQ(refusal(call), "aten::relu has no argument 'file'");

  EXPECT_EQ(refusal("aten::sum.dim_IntList", {tensor_arg(x), numbers({0}), text("x")}),
            "argument 'keepdim': expected bool, got text");
  EXPECT_EQ(refusal("aten::cat", {tensor_arg(x)}),
            "argument 'tensors': expected a list of tensors, got a tensor");
  EXPECT_EQ(refusal("aten::cat", {numbers({1})}),
            "argument 'tensors': expected Tensor in a list, got an integer");
  EXPECT_EQ(refusal("aten::zeros", {Arg{List{{text("4")}, false}}}),
            "argument 'size': expected int, got text");
  EXPECT_EQ(refusal("aten::sum.dim_DimnameList", {tensor_arg(x), Arg{List{{text("a")}, false}}}),
            "argument 'dim': lists of str");
  EXPECT_EQ(refusal(make_call("aten::max.dim", {tensor_arg(x), Arg{int64_t{0}}}, tensor_arg(out))),
            "2 results expected");

  auto zeros = make_call("aten::zeros", {numbers({4, 4})}, tensor_arg(out));
  const auto with = [&](const char* key, Arg value) {
    zeros.kwargs = {{key, std::move(value)}};
    return refusal(zeros);
  };
  EXPECT_EQ(with("device", Arg{Named{"device", "meta"}}), "argument 'device': the device 'meta'");
  EXPECT_EQ(with("device", Arg{Named{"device", "privateuseone:0"}}),
            "argument 'device': the device 'privateuseone:0'");
  EXPECT_EQ(with("dtype", Arg{Named{"dtype", "qint8"}}), "argument 'dtype': the dtype 'qint8'");
  EXPECT_EQ(with("dtype", Arg{int64_t{12}}), "argument 'dtype': expected a name, got an integer");
  EXPECT_EQ(with("layout", Arg{Named{"layout", "sparse_coo"}}), "argument 'layout': the layout 'sparse_coo'");
}

TEST_F(PreparedCallTest, OurOwnOperatorsWantWhatTheyWant) {
  EXPECT_EQ(refusal("nereid::manual_seed", {text("x")}), "nereid::manual_seed expects an integer");
  EXPECT_EQ(refusal("nereid::save_generator", {}), "nereid::save_generator expects an integer");
}

// A call that asks for a tensor has run.
struct Untouched : Operands {
  at::Tensor operand(ValueId value, bool) override {
    ADD_FAILURE() << "value " << value << " was asked for";
    return at::Tensor();
  }
  void bind(ValueId, at::Tensor) override { ADD_FAILURE(); }
  at::Generator generator(const std::string&) override { return {}; }
  void seed(uint64_t) override {}
  void save_generator(int64_t, const std::string&) override {}
  void restore_generator(int64_t, const std::string&) override {}
};

// Operators that change sizes and strides alone are known by PyTorch's tag, not by the list.
TEST_F(PreparedCallTest, WhatChangesATensorsFormIsNeverCalled) {
  const auto form = [&](const char* op, std::vector<Arg> args) {
    const auto prepared_call =
        PreparedCall::prepare(make_call(op, std::move(args), tensor_arg(x)), s.trace, *machine);
    EXPECT_TRUE(prepared_call.only_metadata()) << op;
    EXPECT_FALSE(prepared_call.does_work()) << op;
    Untouched operands;
    prepared_call.run(operands);
  };
  form("aten::set_.source_Tensor", {tensor_arg(x), tensor_arg(i)});
  form("aten::resize_", {tensor_arg(x), numbers({int64_t{1} << 40})});
  form("aten::resize_as_", {tensor_arg(x), tensor_arg(out)});
  form("aten::as_strided_", {tensor_arg(x), numbers({4}), numbers({int64_t{1} << 40})});
  form("aten::t_", {tensor_arg(x)});
  form("aten::detach_", {tensor_arg(x)});
  EXPECT_EQ(refusal("aten::resize_", {tensor_arg(x), numbers({64})}),
            "aten::resize_ of a tensor that is none of its arguments");
  EXPECT_NE(refusal("aten::set_.source_Storage", {tensor_arg(x), Arg{int64_t{0x1000}}}), "");
}

class HostileProgram : public testing::Test {
 protected:
  // What a candidate that launches `ttir` is refused with.
  std::string refusal(const std::string& ttir, std::vector<Call> before = {}) {
    const auto trace = sample_task(false, 64, [&](Sketch& s, const TaskTensors& t) {
      const auto out = s.tensor({64});
      s.step(make_call("aten::empty_like", {tensor_arg(t.x)}, tensor_arg(out)));
      if (s.trace.kernels.empty()) {
        s.kernel("hostile");
        s.trace.kernels[0].ttir = ttir;
      }
      auto launch = make_launch(0, {t.x, t.y, out});
      launch.alternatives[0].args.push_back(IntArg{64});
      launch.alternatives[0].before = before;
      s.step(launch);
      return tensor_arg(out);
    });
    const auto machine = make_cpu_machine();
    try {
      Program::prepare(trace, *machine, {});
    } catch (const Failed& failed) {
      EXPECT_TRUE(failed.where);
      return failed.what();
    }
    return "";
  }
  // The sample's kernel with a line more.
  static std::string with_line(const std::string& line) {
    auto text = binary_ttir("addf");
    return text.replace(text.find("    tt.return"), 0, "    " + line + "\n");
  }
};

TEST_F(HostileProgram, AKernelWithMachineCodeOrPointersOfItsOwnIsRefusedBeforeAnythingRuns) {
  EXPECT_EQ(refusal(with_line("")), "");
  const auto assembly = [](const std::string& text) {
    return with_line("%e = tt.elementwise_inline_asm \"" + text +
                     "\" {constraints = \"=r,r\", packed_element = 1 : i32, pure = false} %n : i32 -> i32");
  };
  EXPECT_EQ(refusal(assembly("mov.b32 $0, $1;")), "") << "which the executor knows";
  for (const auto* text :
       {"ld.global.b32 $0, [$1];", "st.global.b32 [$1], $1;", "trap;", "mov.u64 $0, %clock64;"})
    EXPECT_NE(refusal(assembly(text)).find(std::string("Unsupported: inline assembly \"") + text),
              std::string::npos)
        << refusal(assembly(text));
  EXPECT_EQ(refusal(with_line(R"(llvm.inline_asm "trap")")),
            "Unsupported: operation llvm.inline_asm (TTIR line 21)");
  EXPECT_EQ(refusal("module {"), "TTIR line 1, column 9: expected a name");
  EXPECT_EQ(refusal(with_line("%p = tt.int_to_ptr %x : i64 -> !tt.ptr<f32>")),
            "TTIR line 21, column 48: a value of type !tt.ptr<f32> is used as i64");
  // An address belongs to no buffer: the executor gives it no memory, and a launch may touch all it was
  // given.
  EXPECT_EQ(
      refusal(with_line("%q = arith.extsi %n : i32 to i64\n    %p = tt.int_to_ptr %q : i64 -> !tt.ptr<f32>")),
      "");
}

TEST_F(HostileProgram, WhatRunsBeforeALaunchIsHeldToTheSameList) {
  EXPECT_EQ(refusal(with_line(""), {make_call("aten::from_file", {text("/etc/passwd")}, Arg{})}),
            "aten::from_file is not run by a replay");
}

// One call, marked `order_check`, on float64 tensors.
class OrderCheckTest : public testing::Test, protected Operands {
 protected:
  Arg given(const at::Tensor& tensor) {
    const auto id = s.tensor(tensor.sizes().vec(), DType::kF64);
    tensors_[id] = tensor;
    return tensor_arg(id);
  }
  at::Tensor played(const std::string& op, std::vector<Arg> args) {
    const ReplayMode mode;
    const auto out = s.tensor({1}, DType::kF64);
    PreparedCall::prepare(make_call("nereid::order_check aten::" + op, std::move(args), tensor_arg(out)),
                          s.trace, *machine)
        .run(*this);
    return tensors_.at(out);
  }
  static at::Tensor of(const std::vector<double>& numbers, std::vector<int64_t> sizes) {
    auto made = at::empty(sizes, at::TensorOptions().dtype(c10::kDouble));
    std::ranges::copy(numbers, made.data_ptr<double>());
    return made;
  }
  // Of each element whether it is NaN.
  static std::vector<bool> odd(const at::Tensor& tensor) {
    std::vector<bool> out;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      out.push_back(std::isnan(tensor.reshape({-1})[i].item().toDouble()));
    return out;
  }
  // A transposed convolution with padding 1 of four ones a channel.
  std::vector<bool> transposed(const at::Tensor& weight, int64_t groups) {
    const auto x = at::ones({1, weight.size(0), 4}, at::TensorOptions().dtype(c10::kDouble));
    return odd(played("conv_transpose1d", {given(x), given(weight), Arg{None{}}, numbers({1}), numbers({1}),
                                           numbers({0}), Arg{groups}, numbers({1})}));
  }

  Sketch s;
  const std::unique_ptr<Machine> machine = make_cpu_machine();

 private:
  at::Tensor operand(ValueId value, bool) override { return tensors_.at(value); }
  void bind(ValueId value, at::Tensor result) override { tensors_[value] = std::move(result); }
  at::Generator generator(const std::string&) override { throw std::runtime_error("no generator"); }
  void seed(uint64_t) override {}
  void save_generator(int64_t, const std::string&) override {}
  void restore_generator(int64_t, const std::string&) override {}

  std::map<ValueId, at::Tensor> tensors_;
};

TEST_F(OrderCheckTest, AnInfiniteFactorDecidesASumAndNoProduct) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto x = of({1, kInfinity, 2, 3}, {2, 2}), ones = at::ones({2, 1}, x.options());
  EXPECT_EQ(odd(played("mm", {given(x), given(ones)})), (std::vector<bool>{true, false}));
  const auto beyond = of({1, 1e39, 2, 3}, {2, 2}), small = of({1, 1e-3}, {2, 1});
  EXPECT_EQ(odd(played("mm", {given(beyond), given(small)})), (std::vector<bool>{true, false}))
      << "infinite in float32";
  EXPECT_EQ(odd(played("sum.dim_IntList", {given(x), numbers({1})})), (std::vector<bool>{false, false}));
}

TEST_F(OrderCheckTest, ProductsHangOnOrderWhereRunsOfFactorsLeaveFloat32) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Arg rows{int64_t{1}};
  const auto scan = [&](const std::vector<double>& row) {
    return odd(played("cumprod", {given(of(row, {1, static_cast<int64_t>(row.size())})), rows}));
  };
  using Odd = std::vector<bool>;
  EXPECT_EQ(scan({2, 3, 1e-3, 5}), (Odd{false, false, false, false}));
  EXPECT_EQ(scan({1e20, 1e20, 1e20}), (Odd{false, false, false})) << "infinite in every order";
  EXPECT_EQ(scan({1e-20, 1e-20, 1e-20}), (Odd{false, false, false})) << "zero in every order";
  EXPECT_EQ(scan({1e-20, 1e-20, 1e-20, 1e20, 1e20}), (Odd{false, false, false, false, true}));
  EXPECT_EQ(scan({1e20, 1e20, 1e-20}), (Odd{false, false, true})) << "infinity, or 1e20";
  EXPECT_EQ(scan({1e-30, 1e-15, 1e30}), (Odd{false, false, true})) << "zero, or 1e-15";
  EXPECT_EQ(scan({0, 1e20, 1e20}), (Odd{false, false, true})) << "zero, or NaN";
  EXPECT_EQ(scan({0, kInf, 1e-30, 1e-30}), (Odd{false, true, true, true})) << "NaN itself";
  EXPECT_EQ(scan({kInf, 1e-30, 1e-30}), (Odd{false, false, true})) << "infinity, or NaN";
}

TEST_F(OrderCheckTest, ProductsOfStridedFactorsHangOnOrder) {
  const Arg rows{int64_t{1}};
  const auto product = [&](const std::vector<double>& row) {
    const auto made =
        played("prod.dim_int", {given(of(row, {1, static_cast<int64_t>(row.size())})), rows, Arg{false}});
    EXPECT_EQ(made.sizes(), c10::IntArrayRef({1}));
    return made.item().toDouble();
  };
  std::vector<double> alternating, same;
  for (int i = 0; i < 32; ++i) alternating.push_back(i % 2 == 0 ? 1e8 : 1e-8), same.push_back(1.5);
  EXPECT_TRUE(std::isnan(product(alternating))) << "threads take every other factor";
  EXPECT_NEAR(product(same), std::pow(1.5, 32), 1e-6);
  EXPECT_EQ(odd(played("prod", {given(of(alternating, {4, 8}))})), std::vector<bool>{true});
  std::vector<double> far;
  for (int i = 0; i < 64; ++i) far.push_back(i < 32 ? 1e12 : 1e-12);
  for (int i = 0; i < 64; ++i) far.push_back(i < 32 ? 1e-12 : 1e-12);
  EXPECT_TRUE(std::isnan(product(far)));
  const auto scanned = played("cumprod", {given(of({1e200, 1e200, 0}, {1, 3})), rows});
  EXPECT_EQ(scanned.reshape({-1})[2].item().toDouble(), 0) << "NaN in float64 as well: infinity times zero";
}

TEST_F(OrderCheckTest, SumsThatOverflowOnTheirWayAreNoNumbers) {
  const auto x = of({3e38, 3e38, -3e38, 1, 2, 3}, {2, 3});
  EXPECT_EQ(odd(played("sum.dim_IntList", {given(x), numbers({1})})), (std::vector<bool>{true, false}));
  EXPECT_EQ(odd(played("mean.dim", {given(x), numbers({1})})), (std::vector<bool>{true, false}));
  EXPECT_EQ(odd(played("cumsum", {given(x), Arg{int64_t{1}}})),
            (std::vector<bool>{false, true, true, false, false, false}));
  const auto y = of({2, 1, 0, 1, -1, 0}, {3, 2});
  EXPECT_EQ(odd(played("mm", {given(x), given(y)})), (std::vector<bool>{true, true, false, false}));
}

TEST_F(OrderCheckTest, SquaresThatOverflowOnTheirWayAreNoNumbers) {
  const auto x = of({3e19, 1e19, -3e19, 1, 2, 3, 1e18, 2e18, 3e18}, {3, 3});
  for (const char* op : {"std.dim", "var.dim", "linalg_vector_norm"}) {
    std::vector<Arg> args = {given(x), numbers({1})};
    if (op == std::string("linalg_vector_norm")) args.insert(args.begin() + 1, Arg{2.0});
    EXPECT_EQ(odd(played(op, std::move(args))), (std::vector<bool>{true, false, false})) << op;
  }
}

TEST_F(OrderCheckTest, DeviationsOfEqualNumbersAreNone) {
  const auto x = of({0.7, 0.7, 0.7, 0, 0, 0, 1, 2, 3}, {3, 3});
  for (const char* op : {"std.dim", "var.dim"})
    EXPECT_EQ(odd(played(op, {given(x), numbers({1})})), (std::vector<bool>{true, false, false})) << op;
  EXPECT_EQ(odd(played("std.correction", {given(x), numbers({0, 1}), Arg{None{}}})),
            std::vector<bool>{false});
}

TEST_F(OrderCheckTest, WhatAQueryThatIsNoNumberFindsIsNone) {
  const auto numbers = at::ones({1, 1, 3, 2}, at::TensorOptions().dtype(c10::kDouble));
  const auto query = numbers.clone();
  query[0][0][1][0] = std::nan("");
  const auto found = played("scaled_dot_product_attention", {given(query), given(numbers), given(numbers)});
  EXPECT_EQ(odd(found), (std::vector<bool>{false, false, true, true, false, false}));
}

// Three queries and as many keys, of two numbers each; `spoil` changes queries, keys or values.
TEST_F(OrderCheckTest, RowsOfAttentionWhoseScoresAreNoNumbersAreNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto attention = [&](bool causal, const auto& spoil) {
    at::Tensor q, k, v;
    for (at::Tensor* each : {&q, &k, &v})
      *each = at::ones({1, 1, 3, 2}, at::TensorOptions().dtype(c10::kDouble));
    spoil(q, k, v);
    return odd(played("scaled_dot_product_attention",
                      {given(q), given(k), given(v), Arg{None{}}, Arg{0.0}, Arg{causal}}));
  };
  using Odd = std::vector<bool>;
  const Odd none(6, false), all(6, true);
  const auto no_number = [](at::Tensor&, at::Tensor& k, at::Tensor&) { k[0][0][2][0] = std::nan(""); };
  EXPECT_EQ(attention(true, no_number), all) << "hidden from two rows, which may have read it";
  const auto far = [&](at::Tensor&, at::Tensor& k, at::Tensor&) { k[0][0][0][0] = -kInfinity; };
  EXPECT_EQ(attention(false, far), none) << "a key of no weight";
  EXPECT_EQ(attention(true, far), (Odd{true, true, false, false, false, false}))
      << "the first row's only one";
  const auto none_left = [&](at::Tensor&, at::Tensor& k, at::Tensor&) { k.fill_(-kInfinity); };
  EXPECT_EQ(attention(false, none_left), all);
  const auto large = [&](at::Tensor& q, at::Tensor& k, at::Tensor&) {
    q[0][0][1].fill_(1e20), k[0][0][0].fill_(1e19);
  };
  EXPECT_EQ(attention(false, large), (Odd{false, false, true, true, false, false}))
      << "float32 has no such scores";
  const auto value = [&](at::Tensor&, at::Tensor&, at::Tensor& v) { v[0][0][2][1] = kInfinity; };
  EXPECT_EQ(attention(true, value), (Odd{false, false, false, false, false, true}))
      << "zero times infinity: reported as a number";
  EXPECT_EQ(attention(false, value), none) << "infinite in every order";
  EXPECT_EQ(attention(true, [](at::Tensor&, at::Tensor&, at::Tensor&) {}), none);
}

TEST_F(OrderCheckTest, AnInfiniteTermIsInfiniteInEveryOrder) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto x = of({infinity, 3e38, 3e38, 1}, {2, 2});
  const auto sum = played("sum.dim_IntList", {given(x), numbers({1})});
  EXPECT_EQ(sum[0].item().toDouble(), infinity);
}

TEST_F(OrderCheckTest, ChannelsOfATransposedConvolutionWithOddWeightsAreNoNumbers) {
  auto weight = at::ones({2, 3, 3}, at::TensorOptions().dtype(c10::kDouble));  // [in, out, taps]
  EXPECT_EQ(transposed(weight, 1), std::vector<bool>(12, false));
  weight[1][2][0] = std::numeric_limits<double>::infinity();
  std::vector<bool> last(12, false);
  std::fill(last.begin() + 8, last.end(), true);
  EXPECT_EQ(transposed(weight, 1), last) << "PyTorch has a number where the padding is";
  // Of two groups the second one's last channel.
  std::vector<bool> sixth(24, false);
  std::fill(sixth.begin() + 20, sixth.end(), true);
  EXPECT_EQ(transposed(weight, 2), sixth);
}

}  // namespace
}  // namespace nereid::replay
