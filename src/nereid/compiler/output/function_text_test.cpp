#include "nereid/compiler/output/function_text.h"

#include <gtest/gtest.h>

#include "nereid/compiler/output/kernel_name.h"

namespace nereid::compiler {
namespace {

TEST(FunctionText, WhatNothingReadsIsLeftOut) {
  EXPECT_EQ(without_unused("def k(x_ptr, BLOCK):\n"
                           "    pid = tl.program_id(0)\n"
                           "    row = pid * BLOCK\n"
                           "    best, place = tl.reduce((x_ptr, 1), 0, larger_of)\n"
                           "    mask = 1\n"
                           "    old = tl.atomic_add(x_ptr, 1)\n"
                           "    tl.store(x_ptr, place, mask=None)\n"),
            "def k(x_ptr, BLOCK):\n"
            "    _, place = tl.reduce((x_ptr, 1), 0, larger_of)\n"
            "    old = tl.atomic_add(x_ptr, 1)\n"
            "    tl.store(x_ptr, place, mask=None)\n");
}

TEST(FunctionText, CallsOfAForwardStay) {
  EXPECT_EQ(
      without_unused_names("        mask = torch.ones(3)\n        a, b = f(x, out=1)\n        return a\n"),
      "        torch.ones(3)\n        a, _ = f(x, out=1)\n        return a\n");
}

TEST(FunctionText, ABlockKeepsItsOnlyStatement) {
  const char* loop = "def k(n):\n    for i in range(n):\n        x = i\n    tl.store(n, 1)\n";
  EXPECT_EQ(without_unused(loop), loop);
}

TEST(FunctionText, ParametersHaveHints) {
  EXPECT_EQ(
      with_hints("@triton.jit\ndef k(x_ptr, step, BLOCK: tl.constexpr):\n    pass\n"),
      "@triton.jit\ndef k(x_ptr: tl.tensor, step: tl.tensor, BLOCK: tl.constexpr) -> None:\n    pass\n");
}

TEST(KernelName, SaysWhatTheKernelDoes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"linear", "gelu"}, "linear_gelu"},
      {{"mean", "mean_rest", "variance", "layer_norm_scale", "layer_norm", "gelu"}, "layer_norm_gelu"},
      {{"embedding", "arange", "add", "clone", "linear"}, "embedding_add_linear"},
      {{"_to_copy", "pow", "mean", "add", "rsqrt", "mul"}, "pow_mean_rsqrt"},
      {{"mul", "add", "tanh", "mean", "variance", "layer_norm", "argmin"}, "tanh_layer_norm_argmin"},
      {{"_to_copy"}, "cast"},
      {{"mean", "variance"}, "mean_variance"},
      {{"softmax_max", "softmax_sum"}, "softmax_max_softmax_sum"},
      {{"sub_", "sub", "copy"}, "sub"}};
  for (const auto& [words, name] : cases) EXPECT_EQ(name_of_work(words), name);
}

}  // namespace
}  // namespace nereid::compiler
