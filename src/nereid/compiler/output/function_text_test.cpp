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

TEST(FunctionText, ValuesAreWrittenWhereTheyAreRead) {
  const auto written = [](const std::string& body, const std::string& result) {
    const std::string head = "def k(x):\n", end = "    tl.store(y_ptr, " + result + ")\n";
    const std::string text = with_expressions(head + body + end);
    return text.substr(head.size(), text.size() - head.size() - end.size());
  };
  EXPECT_EQ(written("    multiply = x * 0.5\n    multiply_1 = x * 0.7\n    erf = tl.erf(multiply_1)\n"
                    "    add = erf + 1.0\n    gelu = multiply * add\n",
                    "gelu"),
            "    gelu = x * 0.5 * (tl.erf(x * 0.7) + 1.0)\n");
  EXPECT_EQ(written("    subtract = x - m\n    y = a - subtract\n", "y"), "    y = a - (x - m)\n");
  EXPECT_EQ(written("    subtract = x - m\n    y = subtract + a\n", "y"), "    y = x - m + a\n");
  EXPECT_EQ(written("    divide = x / m\n    y = a / divide\n", "y"), "    y = a / (x / m)\n");
  EXPECT_EQ(written("    multiply = x * m\n    y = a - multiply * b\n", "y"), "    y = a - x * m * b\n");
  EXPECT_EQ(written("    negate = -x\n    y = a * negate\n", "y"), "    y = a * -x\n");
  EXPECT_EQ(written("    negate = -x\n    y = negate.to(tl.float16)\n", "y"),
            "    y = (-x).to(tl.float16)\n");
  EXPECT_EQ(written("    add = x + 1\n    y = -add\n", "y"), "    y = -(x + 1)\n");
  EXPECT_EQ(written("    less = x < m\n    y = less & inside\n", "y"), "    y = (x < m) & inside\n");
  EXPECT_EQ(written("    less = x < m\n    y = less == z\n", "y"), "    y = (x < m) == z\n");
  EXPECT_EQ(written("    where = tl.where(c, x, 0.0)\n    y = tl.where(d, where, 1.0)\n", "y"),
            "    y = tl.where(d, tl.where(c, x, 0.0), 1.0)\n");
  EXPECT_EQ(written("    multiply = x * {480*5 * 96}\n    y = multiply + 1\n", "y"),
            "    y = x * {480*5 * 96} + 1\n");
}

TEST(FunctionText, WhatIsReadTwiceOrElsewhereKeepsItsName) {
  for (const char* text :
       {"def k(x):\n    add = x + 1\n    y = add * add\n    tl.store(p, y)\n",
        "def k(x):\n    add = x + 1\n    tl.store(p, add)\n",
        "def k(x):\n    add = x + 1\n    for i in range(n):\n        y = add * i\n        tl.store(p, y)\n",
        "def k(x):\n    for i in range(n):\n        total = total + i\n        add = total + 1\n"
        "        total = add * 2\n    tl.store(p, total)\n",
        "def k(x):\n    hidden = x + 1\n    y = hidden * 2\n    tl.store(p, y)\n"})
    EXPECT_EQ(with_expressions(text), text);
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
