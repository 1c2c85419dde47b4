// Operators that trust their caller, given what they must not be.
#include "nereid/replay/worker/argument_checks.h"

#include <gtest/gtest.h>

#include <map>

#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/prepared_call.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/trace_sketch.h"

namespace nereid::replay {
namespace {

using namespace trace;

// Plays one call on tensors of its own: zeros, or what `put` says.
class ArgumentChecksTest : public testing::Test, protected Operands {
 protected:
  Arg tensor(std::vector<int64_t> sizes, DType type = DType::kF32) {
    return tensor_arg(s.tensor(sizes, type));
  }
  Arg filled(std::vector<int64_t> sizes, double number, DType type = DType::kI64) {
    const auto id = s.tensor(sizes, type);
    numbers_[id] = number;
    return tensor_arg(id);
  }
  static Arg ints(std::vector<int64_t> items) {
    List list;
    for (const auto item : items) list.items.push_back(Arg{item});
    return Arg{std::move(list)};
  }
  static Arg flags(std::vector<bool> items) {
    List list;
    for (const bool item : items) list.items.push_back(Arg{item});
    return Arg{std::move(list)};
  }
  static Arg number(int64_t n) { return Arg{n}; }
  static Arg none() { return Arg{None{}}; }

  // "" where it runs; else the error, and when it came.
  std::string played(const std::string& op, std::vector<Arg> args) {
    const ReplayMode mode;
    const auto& schema = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + op).c_str(), "").schema();
    List results{.items = std::vector<Arg>(schema.returns().size()), .tuple = true};
    auto call = make_call("aten::" + op, std::move(args), Arg{std::move(results)});
    std::string when = "before: ";
    try {
      const auto prepared_call = PreparedCall::prepare(call, s.trace, *machine_);
      when = "at the call: ";
      prepared_call.run(*this);
    } catch (const Failed& failed) {
      return when + failed.what();
    } catch (const c10::Error& error) {
      return "PyTorch: " + std::string(error.what_without_backtrace());
    }
    return "";
  }

  Sketch s;

 private:
  at::Tensor operand(ValueId id, bool) override {
    const auto& value = s.trace.values[id];
    const auto tensor = at::zeros(value.sizes, at::TensorOptions().dtype(scalar_type(value.dtype)));
    const auto number = numbers_.find(id);
    return number == numbers_.end() ? tensor : tensor.fill_(number->second);
  }
  void bind(ValueId, at::Tensor) override {}
  at::Generator generator(const std::string&) override { return {}; }
  void seed(uint64_t) override {}
  void save_generator(int64_t, const std::string&) override {}
  void restore_generator(int64_t, const std::string&) override {}

  std::map<ValueId, double> numbers_;
  const std::unique_ptr<Machine> machine_ = make_cpu_machine();
};

TEST_F(ArgumentChecksTest, BatchNormsStatisticsHaveAnElementPerChannel) {
  const auto norm = [&](const std::string& op, int64_t statistics) {
    const auto c = [&] { return tensor({statistics}); };
    return played(op, {tensor({3, 4000, 2}), c(), c(), c(), c(), Arg{false}, Arg{0.1}, Arg{1e-5}});
  };
  EXPECT_EQ(norm("native_batch_norm", 4000), "");
  EXPECT_EQ(norm("native_batch_norm", 1),
            "before: argument 'weight' of native_batch_norm: expected 4000 elements, got 1");
  EXPECT_EQ(norm("_native_batch_norm_legit", 0),
            "before: argument 'weight' of _native_batch_norm_legit: expected 4000 elements, got 0");
  EXPECT_EQ(played("_batch_norm_with_update",
                   {tensor({3, 40}), none(), none(), tensor({40}), tensor({1}), Arg{0.1}, Arg{1e-5}}),
            "before: argument 'running_var' of _batch_norm_with_update: expected 40 elements, got 1");
  EXPECT_EQ(
      played("_batch_norm_no_update", {tensor({40}), none(), none(), none(), none(), Arg{0.1}, Arg{1e-5}}),
      "before: argument 'input' of _batch_norm_no_update: expected at least 2 dimensions, got 1");
}

TEST_F(ArgumentChecksTest, WhatWasFoundByTryingEveryOperatorWithAnything) {
  const auto no_update = [&](Arg mean) {
    return played("_batch_norm_no_update",
                  {tensor({2, 3, 4}), none(), none(), mean, mean, Arg{0.1}, Arg{1e-5}});
  };
  EXPECT_EQ(no_update(tensor({3})), "");
  EXPECT_EQ(no_update(none()), "before: the argument 'running_mean' of _batch_norm_no_update is missing");
  const auto norm = [&](bool training) {
    return played("native_batch_norm",
                  {tensor({2, 3, 4}), none(), none(), none(), none(), Arg{training}, Arg{0.1}, Arg{1e-5}});
  };
  EXPECT_EQ(norm(true), "");
  EXPECT_EQ(norm(false), "before: the argument 'running_mean' of native_batch_norm is missing");

  EXPECT_EQ(played("reflection_pad1d", {tensor({3, 4}), ints({1, 1})}), "");
  EXPECT_EQ(played("reflection_pad3d", {tensor({2, 3, 4, 4}), ints({})}),
            "before: argument 'padding' of reflection_pad3d: expected 6 numbers, got 0");
  EXPECT_EQ(played("replication_pad2d_backward", {tensor({3, 6, 6}), tensor({3, 4, 4}), ints({1})}),
            "before: argument 'padding' of replication_pad2d_backward: expected 4 numbers, got 1");
  EXPECT_EQ(played("fractional_max_pool2d_backward",
                   {tensor({1, 4}), tensor({1, 4}), ints({1, 1}), ints({}), filled({1, 4}, 0)}),
            "before: argument 'output_size' of fractional_max_pool2d_backward: expected 2 numbers, got 0");

  const auto fourier = [&](std::vector<int64_t> dims) {
    return played("_fft_r2c", {tensor({3, 4}), ints(std::move(dims)), number(0), Arg{true}});
  };
  EXPECT_EQ(fourier({0, 1}), "");
  EXPECT_EQ(fourier({1 << 30}),
            "before: argument 'dim' of _fft_r2c: expected dimensions from 0 to 1, each once, got 1073741824");
  EXPECT_NE(fourier({0, 0}), "");
  EXPECT_NE(fourier({-1}), "");

  const Arg nothing{List{}};
  EXPECT_EQ(played("_stack", {nothing, number(0)}), "before: _stack: expected at least one tensor");
  EXPECT_EQ(played("_foreach_copy", {nothing, Arg{List{{tensor({3})}, false}}}),
            "before: _foreach_copy: expected as many sources as targets");
  EXPECT_EQ(played("_scaled_mm", {tensor({64}), tensor({2, 3}), tensor({}), tensor({})}),
            "before: _scaled_mm: expected two matrices");
}

TEST_F(ArgumentChecksTest, NormsGradientsHaveTheirForwardsSizes) {
  const auto batch = [&](Arg gradient, int64_t saved, bool train) {
    return played("native_batch_norm_backward",
                  {std::move(gradient), tensor({3, 4, 5}), tensor({4}), tensor({4}), tensor({4}),
                   tensor({saved}), tensor({saved}), Arg{train}, Arg{1e-5}, flags({true, true, true})});
  };
  EXPECT_EQ(batch(tensor({3, 4, 5}), 4, true), "");
  EXPECT_EQ(batch(tensor({3, 4, 5}), 0, false), "");
  EXPECT_EQ(batch(tensor({3, 4, 5}), 0, true),
            "before: argument 'save_mean' of native_batch_norm_backward: expected 4 elements, got 0");
  EXPECT_EQ(batch(tensor({1, 1, 1}), 4, true),
            "before: argument 'grad_out' of native_batch_norm_backward: expected the sizes 3x4x5, got 1x1x1");

  const auto layer = [&](std::vector<int64_t> shape, int64_t rows, int64_t weights) {
    return played("native_layer_norm_backward",
                  {tensor({6, 8}), tensor({6, 8}), ints(std::move(shape)), tensor({rows, 1}),
                   tensor({rows, 1}), tensor({weights}), tensor({weights}), flags({true, true, true})});
  };
  EXPECT_EQ(layer({8}, 6, 8), "");
  EXPECT_EQ(layer({8}, 1, 8),
            "before: argument 'mean' of native_layer_norm_backward: expected 6 elements, got 1");
  EXPECT_EQ(layer({8}, 6, 1),
            "before: argument 'weight' of native_layer_norm_backward: expected 8 elements, got 1");
  EXPECT_EQ(layer({80}, 6, 80),
            "before: argument 'normalized_shape' of native_layer_norm_backward: expected the last sizes of "
            "6x8, got 80");

  const auto group = [&](Arg gradient) {
    return played("native_group_norm_backward",
                  {std::move(gradient), tensor({2, 4, 8}), tensor({2, 2}), tensor({2, 2}), tensor({4}),
                   number(2), number(4), number(8), number(2), flags({true, true, true})});
  };
  EXPECT_EQ(group(tensor({2, 4, 8})), "");
  EXPECT_EQ(group(tensor({1})),
            "before: argument 'grad_out' of native_group_norm_backward: expected the sizes 2x4x8, got 1");

  const auto weight = [&](int64_t dim, int64_t g) {
    return played("_weight_norm_interface", {tensor({3, 40}), tensor({g}), number(dim)});
  };
  EXPECT_EQ(weight(0, 3), "");
  EXPECT_EQ(weight(1, 40), "");
  EXPECT_EQ(weight(1, 1), "before: argument 'g' of _weight_norm_interface: expected 40 elements, got 1");
  EXPECT_EQ(weight(7, 3), "before: argument 'dim' of _weight_norm_interface: expected 0 or 1, got 7");
}

TEST_F(ArgumentChecksTest, GradientsOfWhatPyTorchKeepsToItselfHaveTheirForwardsSizes) {
  const Arg f32{Named{"dtype", "f32"}};
  for (const auto* op : {"_softmax_backward_data", "_log_softmax_backward_data"}) {
    EXPECT_EQ(played(op, {tensor({3, 4}), tensor({3, 4}), number(1), f32}), "");
    EXPECT_EQ(played(op, {tensor({300, 400}), tensor({1}), number(1), f32}),
              std::string("before: argument 'output' of ") + op + ": expected the sizes 300x400, got 1");
  }
  EXPECT_EQ(played("_adaptive_avg_pool2d_backward", {tensor({2, 3, 2, 2}), tensor({2, 3, 8, 8})}), "");
  EXPECT_NE(played("_adaptive_avg_pool2d_backward", {tensor({1, 1, 2, 2}), tensor({2, 3, 8, 8})}), "");
  EXPECT_NE(played("_adaptive_avg_pool3d_backward", {tensor({2, 2}), tensor({2, 2})}), "");
  EXPECT_NE(played("_prelu_kernel_backward", {tensor({1}), tensor({3, 4}), tensor({1})}), "");

  const auto weight = [&](Arg gradient, int64_t g, int64_t norms) {
    return played("_weight_norm_interface_backward",
                  {std::move(gradient), tensor({3, 40}), tensor({g, 1}), tensor({norms, 1}), number(0)});
  };
  EXPECT_EQ(weight(tensor({3, 40}), 3, 3), "");
  EXPECT_NE(weight(tensor({3, 4}), 3, 3), "");
  EXPECT_NE(weight(tensor({3, 40}), 1, 3), "");
  EXPECT_NE(weight(tensor({3, 40}), 3, 1), "");

  const auto distance = [&](Arg gradient, Arg x2, Arg saved) {
    return played("_cdist_backward",
                  {std::move(gradient), tensor({2, 3, 4}), std::move(x2), Arg{2.0}, std::move(saved)});
  };
  EXPECT_EQ(distance(tensor({2, 3, 5}), tensor({1, 5, 4}), tensor({2, 3, 5})), "");
  EXPECT_EQ(distance(tensor({2, 3, 5}), tensor({1, 5, 4}), tensor({3, 5})),
            "before: argument 'cdist' of _cdist_backward: expected the sizes 2x3x5, got 3x5");
  EXPECT_NE(distance(tensor({2, 3, 1}), tensor({1, 5, 4}), tensor({2, 3, 5})), "");
  EXPECT_NE(distance(tensor({2, 3, 5}), tensor({1, 5, 3}), tensor({2, 3, 5})), "");
  EXPECT_NE(distance(tensor({2, 3, 5}), tensor({3, 5, 4}), tensor({2, 3, 5})), "");
}

TEST_F(ArgumentChecksTest, SamplersStayInsideTheirInputs) {
  const auto grid = [&](Arg gradient) {
    return played("grid_sampler_2d_backward",
                  {std::move(gradient), tensor({2, 3, 4, 4}), tensor({2, 7, 8, 2}), number(0), number(0),
                   Arg{false}, flags({true, true})});
  };
  EXPECT_EQ(grid(tensor({2, 3, 7, 8})), "");
  EXPECT_EQ(
      grid(tensor({2, 3, 1, 1})),
      "before: argument 'grad_output' of grid_sampler_2d_backward: expected the sizes 2x3x7x8, got 2x3x1x1");

  const auto up = [&](double scale) {
    return played("upsample_nearest2d", {tensor({1, 1, 8, 8}), ints({20, 20}), Arg{scale}, Arg{scale}});
  };
  EXPECT_EQ(up(2.5), "");
  EXPECT_EQ(up(2.55), "");
  EXPECT_EQ(up(1e-30),
            "before: argument 'scales_h' of upsample_nearest2d: 1e-30 makes 8e-30 of 8, the output has 20");
  EXPECT_NE(up(-2.5), "");
  EXPECT_NE(up(std::nan("")), "");
  EXPECT_EQ(played("upsample_linear1d", {tensor({1, 1, 8}), ints({16}), Arg{false}, none()}), "");
  EXPECT_EQ(
      played("upsample_nearest2d_backward",
             {tensor({1, 1, 8, 8}), ints({8, 8}), ints({1, 1, 4, 4}), Arg{2.0}, Arg{1e30}}),
      "before: argument 'scales_w' of upsample_nearest2d_backward: 1e+30 makes 4e+30 of 4, the output has 8");

  const auto fractional = [&](double sample) {
    return played("fractional_max_pool2d",
                  {tensor({1, 1, 8, 8}), ints({2, 2}), ints({4, 4}), filled({1, 1, 2}, sample, DType::kF32)});
  };
  EXPECT_EQ(fractional(0.5), "");
  EXPECT_EQ(fractional(1e30),
            "at the call: argument 'random_samples': expected numbers from 0 to 1, got "
            "1.0000000150474662e+30 to 1.0000000150474662e+30");
  EXPECT_NE(fractional(std::nan("")), "");
}

TEST_F(ArgumentChecksTest, IndicesOfGradientsLieInside) {
  const auto pool = [&](Arg indices) {
    return played("max_pool2d_with_indices_backward",
                  {tensor({1, 1, 2, 2}), tensor({1, 1, 4, 4}), ints({2, 2}), ints({2, 2}), ints({0, 0}),
                   ints({1, 1}), Arg{false}, std::move(indices)});
  };
  EXPECT_EQ(pool(filled({1, 1, 2, 2}, 15)), "");
  EXPECT_EQ(pool(filled({1, 1, 2, 2}, 16)),
            "at the call: argument 'indices': expected numbers from 0 to 15, got 16 to 16");
  EXPECT_EQ(pool(filled({1, 1, 2, 2}, -1)),
            "at the call: argument 'indices': expected numbers from 0 to 15, got -1 to -1");
  EXPECT_EQ(pool(filled({1, 1, 1, 1}, 0)),
            "before: argument 'indices' of max_pool2d_with_indices_backward: "
            "expected the sizes 1x1x2x2, got 1x1x1x1");
  const auto adaptive = [&](Arg gradient, Arg indices) {
    return played("adaptive_max_pool3d_backward",
                  {std::move(gradient), tensor({2, 4, 4, 4}), std::move(indices)});
  };
  EXPECT_EQ(adaptive(tensor({2, 2, 2, 2}), filled({2, 2, 2, 2}, 63)), "");
  EXPECT_NE(adaptive(tensor({2, 2, 2, 2}), filled({2, 2, 2, 2}, 64)), "");
  EXPECT_NE(adaptive(tensor({9, 2, 2, 2}), filled({9, 2, 2, 2}, 0)), "");
  EXPECT_NE(adaptive(tensor({2}), filled({2}, 0)), "");

  const auto embedding = [&](double index, int64_t padding) {
    return played("embedding_dense_backward",
                  {tensor({3, 4}), filled({3}, index), number(5), number(padding), Arg{true}});
  };
  EXPECT_EQ(embedding(4, -1), "");
  EXPECT_EQ(embedding(-1, -1), "at the call: argument 'indices': expected numbers from 0 to 4, got -1 to -1")
      << "counted, though it is passed over";
  EXPECT_EQ(embedding(5, -1), "at the call: argument 'indices': expected numbers from 0 to 4, got 5 to 5");

  const auto nll = [&](double target) {
    return played("nll_loss_backward", {tensor({3}), tensor({3, 4}), filled({3}, target), none(), number(0),
                                        number(-100), tensor({})});
  };
  EXPECT_EQ(nll(3), "");
  EXPECT_EQ(nll(-100), "");
  EXPECT_EQ(nll(4), "at the call: argument 'target': expected numbers from 0 to 3, got 4 to 4");

  const auto unfold = [&](Arg gradient) {
    return played("unfold_backward", {std::move(gradient), ints({9}), number(0), number(3), number(2)});
  };
  EXPECT_EQ(unfold(tensor({4, 3})), "");
  EXPECT_EQ(unfold(tensor({100, 3})),
            "before: argument 'grad_in' of unfold_backward: expected the sizes 4x3, got 100x3");
}

TEST_F(ArgumentChecksTest, AttentionsTensorsFitTogether) {
  const auto attention = [&](std::vector<int64_t> key, std::vector<int64_t> value, Arg mask) {
    auto call = make_call("aten::_scaled_dot_product_flash_attention_for_cpu",
                          {tensor({1, 2, 16, 8}), tensor(std::move(key)), tensor(std::move(value))},
                          Arg{List{.items = std::vector<Arg>(2), .tuple = true}});
    call.kwargs.emplace_back("attn_mask", std::move(mask));
    try {
      PreparedCall::prepare(call, s.trace, *make_cpu_machine());
    } catch (const Failed& failed) {
      return std::string(failed.what());
    }
    return std::string();
  };
  EXPECT_EQ(attention({1, 2, 24, 8}, {1, 2, 24, 8}, tensor({16, 24})), "");
  EXPECT_EQ(attention({1, 1, 24, 8}, {1, 1, 24, 8}, none()), "") << "heads that share keys";
  EXPECT_NE(attention({1, 2, 24, 8}, {1, 1, 24, 8}, none()), "");
  EXPECT_NE(attention({1, 2, 24, 4}, {1, 2, 24, 4}, none()), "");
  EXPECT_EQ(attention({1, 2, 24, 8}, {1, 2, 24, 8}, tensor({24, 16})),
            "argument 'attn_mask' of _scaled_dot_product_flash_attention_for_cpu: 24x16 does not spread over "
            "1x2x16x24");
  EXPECT_EQ(played("_transform_bias_rescale_qkv", {tensor({1, 2, 12}), tensor({1}), number(2)}),
            "before: argument 'qkv_bias' of _transform_bias_rescale_qkv: expected 12 elements, got 1");
}

}  // namespace
}  // namespace nereid::replay
