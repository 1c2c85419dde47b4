#include "nereid/render/line_breaks.h"

#include <gtest/gtest.h>

namespace nereid::render {
namespace {

struct Case {
  const char *line, *broken;
};

TEST(LineBreaks, BreaksInTheLastBracketsThenBetweenCommasThenAtOperators) {
  for (const auto& [line, broken] : {
           Case{"short(a, b)\n", "short(a, b)\n"},
           Case{"    kernel[(n,)](alpha, beta, gamma)\n",
                "    kernel[(n,)](\n        alpha, beta, gamma\n    )\n"},
           Case{"def kernel(alpha_ptr, beta_ptr, gamma_ptr):\n",
                "def kernel(\n    alpha_ptr,\n    beta_ptr,\n    gamma_ptr,\n):\n"},
           Case{"x = load(pointer + row * 24, mask=row < 24)\n",
                "x = load(\n    pointer + row * 24,\n    mask=row < 24,\n)\n"},
           Case{"x = load(pointer + row * 24 + column, mask=1)\n",
                "x = load(\n    pointer\n    + row * 24\n    + column,\n    mask=1,\n)\n"},
           Case{"x = load(pointer + row * 24, mask=1).to(f32)\n",
                "x = load(\n    pointer + row * 24,\n    mask=1,\n).to(f32)\n"},
           Case{"x = load(pointer + row * 24)[:, None]\n", "x = load(\n    pointer + row * 24\n)[:, None]\n"},
           Case{"x = f(a).gather_all(pointer, row * 24)\n",
                "x = f(a).gather_all(\n    pointer, row * 24\n)\n"},
           Case{"total = first_number * second + third_one\n",
                "total = (\n    first_number * second\n    + third_one\n)\n"},
           Case{"return first_number * second_number + third\n",
                "return (\n    first_number * second_number\n    + third\n)\n"},
           Case{"x = f(a)  # words that go before the statement\n",
                "# words that go before the\n# statement\nx = f(a)\n"},
           Case{"    # a comment of many words, filled\n", "    # a comment of many\n    # words, filled\n"},
           Case{"x = 1e-05 + second_number_of_all * 1e-05 - third\n",
                "x = (\n    1e-05\n    + second_number_of_all * 1e-05\n    - third\n)\n"},
           Case{"torch.tensor([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])\n",
                "torch.tensor(\n    [\n        1, 2, 3, 4, 5, 6, 7,\n        8, 9, 10, 11, 12,\n        "
                "13,\n    ]\n)\n"},
       })
    EXPECT_EQ(with_line_breaks(line, 28), broken);
}

TEST(LineBreaks, TextsStayWhole) {
  const std::string doc =
      "def f():\n    \"\"\"words (that, are) longer than the width (of, a) line\n    \"\"\"\n";
  EXPECT_EQ(with_line_breaks(doc, 28), doc);
  EXPECT_EQ(with_line_breaks("x = \"a text that is longer than a line\"\n", 28),
            "x = \"a text that is longer than a line\"\n");
}

TEST(LineBreaks, JoinedAgainTheyAreOneLine) {
  for (const char* line :
       {"kernel[(n,)](alpha, beta, gamma, delta)\n", "x = load(pointer + row * 24, mask=row < 24)\n",
        "def kernel(alpha_ptr, beta_ptr, gamma_ptr):\n"})
    EXPECT_EQ(without_line_breaks(with_line_breaks(line, 28)), line);
  EXPECT_EQ(without_line_breaks("x = (\n    1,\n)\ny = (2,)\n"), "x = (1)\ny = (2,)\n");
}

}  // namespace
}  // namespace nereid::render
