#include "nereid/lm/plan_sizes/plan_sizes.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

const std::string kNoTask = "x = 1\n";

// What a plan's steps go on with: each call is pushed as `piece` characters at a time.
std::string completed(const std::string& given, const std::vector<std::string>& calls, size_t piece = 1000,
                      const std::string& task = kNoTask) {
  PlanSizes sizes(task);
  EXPECT_EQ(sizes.push(given + "\n"), "");
  std::string all;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string text = "#" + std::to_string(i + 1) + " " + calls[i];
    std::string next;
    for (size_t at = 0; at < text.size(); at += piece) {
      EXPECT_EQ(next, "") << "before the call's end";
      next = sizes.push(text.substr(at, piece));
    }
    all += next.empty() ? "?\n" : next;
    if (next.empty()) sizes.push(" [1]\n");
  }
  return all;
}

TEST(PlanSizes, CompletesCallsHoweverTheyAreCut) {
  for (const size_t piece : {1, 3, 7, 1000})
    EXPECT_EQ(completed("given x [2, 32, 15, 15], y [2, 96, 15, 15], w [64, 32, 3, 3]",
                        {"convolution(x, w, [1, 1], [1, 1], [1, 1], [0, 0], 1)", "cat([#1, y], 1)",
                         "mean(#2, [2, 3], keepdim)", "mean(#2, [2, 3])", "mul(#2, #3)"},
                        piece),
              " [2, 64, 15, 15]\n [2, 160, 15, 15]\n [2, 160, 1, 1]\n [2, 160]\n [2, 160, 15, 15]\n");
}

TEST(PlanSizes, SaysWhereViewsAre) {
  EXPECT_EQ(completed("given x [8, 20, 16]",
                      {"slice(x, 1, 2, 5)", "permute(x, [2, 0, 1])", "select(x, -1, 3)", "chunk(x, 2, 1)",
                       "view(#2, [16, 160])", "unsqueeze(#1.1, 0)", "expand(x, [3, -1, -1, -1])"}),
            " [8, 3, 16] strides 20 * 16, 16, 1 from 2 * 16\n"
            " [16, 8, 20] strides 1, 20 * 16, 16\n"
            " [8, 20] strides 20 * 16, 16 from 3\n"
            " [8, 10, 16] strides 20 * 16, 16, 1, [8, 10, 16] strides 20 * 16, 16, 1 from 10 * 16\n"
            " [16, 8 * 20] strides 1, 16\n"
            "?\n"
            " [3, 8, 20, 16] strides 0, 20 * 16, 16, 1\n");
}

// Sizes that a view makes of neighbours are products, but where the task has the number.
TEST(PlanSizes, WritesSizesAsPlansDo) {
  const std::vector<std::string> calls = {"view(x, [189, 23])", "relu(#1)"};
  EXPECT_EQ(completed("given x [27, 7, 23]", calls), " [27 * 7, 23]\n [27 * 7, 23]\n");
  EXPECT_EQ(completed("given x [27, 7, 23]", calls, 1000, "rows = 189\n"), " [189, 23]\n [189, 23]\n");
  EXPECT_EQ(completed("given x [27, 7, 23]", {"view(x, [27 * 7, -1])"}), " [27 * 7, 23]\n");
}

TEST(PlanSizes, LeavesToTheModelWhatItDoesNotKnow) {
  EXPECT_EQ(completed("given x [2, 3], y [4, 5]",
                      {"mul(x, z)", "mm(x, y)", "view(x, [4, 4])", "unheard_of(x)", "relu(#9)", "add(x, y)",
                       "sum(x, [2])", "select(x, 1, 3)", "cat([x, y])", "cat([])",
                       "convolution(x, y, [1], [0], [1], [0], 1)"}),
            "?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n");
}

TEST(PlanSizes, GoesOnAfterLinesOfTheModel) {
  PlanSizes sizes(kNoTask);
  sizes.push("given x [2, 3]\n#1 unheard_of(x) [2, 3, 4]\n#2 chunks(x) [1, 3], [5, 3]\n");
  EXPECT_EQ(sizes.push("#3 relu(#1)"), " [2, 3, 4]\n");
  EXPECT_EQ(sizes.push("#4 relu(#2.2)"), " [5, 3]\n");
  // What the model has begun is completed if it is right.
  EXPECT_EQ(sizes.push("#5 relu(x) ["), "2, 3]\n");
  EXPECT_EQ(sizes.push("#6 relu(x) [3"), "");
}

TEST(PlanSizes, EndsWithThePlan) {
  PlanSizes sizes(kNoTask);
  sizes.push("<think>given x [2]\n#1 relu(x)");
  EXPECT_EQ(sizes.push("returns #1\nFused:\n#2 relu(x)"), "");
  PlanSizes code(kNoTask);
  EXPECT_EQ(code.push("```python\n# relu(x)\n#1 relu(x)"), "");
}

TEST(PlanSizes, KeepsTheOrderOfAxes) {
  // A result is laid out as its operand: a view of it has no places, for the whole is not in order.
  EXPECT_EQ(completed("given x [4, 6, 5]", {"permute(x, [0, 2, 1])", "relu(#1)", "view(#2, [4, 30])",
                                            "clone(#1)", "view(#4, [4, 30])"}),
            " [4, 5, 6] strides 6 * 5, 1, 5\n [4, 5, 6]\n?\n [4, 5, 6]\n [4, 5 * 6]\n");
}

// Text that no plan has must end nothing and cost little.
TEST(PlanSizes, TakesAnyText) {
  for (const std::string text :
       {"#1 (((((((", "#1 a(b[[[[[[[", "#1 a([[[[[[[1]]]]]]])", "#1 view(x, [99999999999999999999])",
        "#1 zeros([-1])", "#1 arange(1e300)", "#1 repeat(x, [4611686018427387904, 4])", "given x\n#1 t(x)",
        "given x [1 * * 2]\n#1 t(x)", "#1 slice(x, 0, 0, 1, 0)", "#1 split(x, 0)",
        "#99999999999999999999 t(x)"}) {
    PlanSizes sizes(kNoTask);
    sizes.push("given x [3, 4]\n");
    sizes.push(text);
    EXPECT_EQ(sizes.push(std::string(10000, ')')), "") << text;
  }
}

}  // namespace
}  // namespace nereid::lm
