#include "nereid/verify/batch/answer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nereid::verify {
namespace {

std::string code(const Answer& answer) {
  if (const auto* none = std::get_if<NoCode>(&answer)) return "NoCode: " + none->reason;
  const std::string& source = std::get<Code>(answer).source;
  return source.substr(std::min(source.find_first_not_of('\n'), source.size()));
}

TEST(Answer, LastCompleteBlockCounts) {
  EXPECT_EQ(code(read_answer("First:\n```python\na = 1\n```\nBetter:\n```python\nb = 2\n```\nDone.")),
            "b = 2\n");
}

TEST(Answer, KeepsTheAnswersLineNumbers) {
  const auto answer = read_answer("one\ntwo\n```python\nx = 1\n```\n");
  EXPECT_EQ(std::get<Code>(answer).source, "\n\n\nx = 1\n");
}

TEST(Answer, AnUnclosedFenceIsNoBlock) {
  EXPECT_EQ(code(read_answer("```python\na = 1\n")), "NoCode: The answer's code block is never closed.");
  EXPECT_EQ(code(read_answer("```python\na = 1\n```\nand\n```python\nb = 2\n")), "a = 1\n");
}

TEST(Answer, TildesAndLongFences) {
  EXPECT_EQ(code(read_answer("~~~python\na = 1\n~~~\n")), "a = 1\n");
  EXPECT_EQ(code(read_answer("````python\na = '''\n```\n'''\n````\n")), "a = '''\n```\n'''\n");
  EXPECT_EQ(code(read_answer("~~~python\na = 1\n```\n~~~\n")), "a = 1\n```\n");
}

TEST(Answer, AFenceInADocstringIsText) {
  const std::string source = "def f():\n    \"\"\"\n```python\nf()\n```\n    \"\"\"\nx = 1\n";
  EXPECT_EQ(code(read_answer("```python\n" + source + "```\n")), source);
}

TEST(Answer, NestedFences) {
  EXPECT_EQ(code(read_answer("```markdown\n```python\na = 1\n```\n```\n")), "a = 1\n");
  EXPECT_EQ(code(read_answer("````markdown\n```python\na = 1\n```\n````\n")), "a = 1\n");
}

TEST(Answer, AForgottenEndBeginsAnew) {
  EXPECT_EQ(code(read_answer("```python\na = 1\nThat was wrong.\n```python\nb = 2\n```\n")), "b = 2\n");
}

TEST(Answer, OtherLanguagesDoNotCount) {
  EXPECT_EQ(
      code(read_answer("```python\na = 1\n```\n```bash\npip install triton\n```\n```\nmax error: 0\n```\n")),
      "a = 1\n");
  EXPECT_EQ(code(read_answer("```cpp\nint x;\n```\n")),
            "NoCode: None of the answer's 1 code blocks is Python.");
  EXPECT_EQ(code(read_answer("```{.python .numberLines}\na = 1\n```\n")), "a = 1\n");
  EXPECT_EQ(code(read_answer("``` Python title=x\na = 1\n```\n")), "a = 1\n");
}

TEST(Answer, UnsaidLanguageIsReadWhereItLooksLikePython) {
  EXPECT_EQ(code(read_answer("```\nimport torch\n```\n")), "import torch\n");
}

TEST(Answer, CodeInThinkingDoesNotCount) {
  EXPECT_EQ(code(read_answer("<think>\n```python\nbad = 1\n```\n</think>\n```python\ngood = 1\n```")),
            "good = 1\n");
  EXPECT_EQ(code(read_answer("```python\nbad = 1\n```\n</think>\n```python\ngood = 1\n```")), "good = 1\n");
  EXPECT_EQ(code(read_answer("<think>\n```python\nbad = 1\n```\n</think>\nI give up.")),
            "NoCode: The answer holds no code block.");
  EXPECT_EQ(code(read_answer("<think>\n```python\nbad = 1\n```\n")),
            "NoCode: The answer ends inside <think>: it never came to its code.");
  EXPECT_EQ(code(read_answer(
                "<think>a</think>\n<think>\n```python\nbad = 1\n```\n</think>\n```python\ngood = 1\n```")),
            "good = 1\n");
  // An unclosed fence in the thinking swallows nothing of the answer.
  EXPECT_EQ(code(read_answer("<think>\n```python\nbad = 1\n</think>\n```python\ngood = 1\n```")),
            "good = 1\n");
}

TEST(Answer, CodeMaySpeakOfThinking) {
  EXPECT_EQ(code(read_answer("<think>x</think>\n```python\na = '<think>'\nb = '</think>'\n```\n")),
            "a = '<think>'\nb = '</think>'\n");
}

TEST(Answer, IndentedFencesLoseTheirIndent) {
  EXPECT_EQ(code(read_answer("1. Do this:\n   ```python\n   if 1:\n       a = 1\n\n   ```\n")),
            "if 1:\n    a = 1\n\n");
}

TEST(Answer, LineEnds) {
  EXPECT_EQ(code(read_answer("```python\r\na = 1\r\n```\r\n")), "a = 1\n");
  EXPECT_EQ(code(read_source("\xef\xbb\xbf"
                             "a = 1\r\nb = 2\rc = 3\n")),
            "a = 1\nb = 2\nc = 3\n");
}

TEST(Answer, InlineCodeIsNoFence) {
  EXPECT_EQ(code(read_answer("Use ```x``` here\n```python\na = 1\n```\n")), "a = 1\n");
}

TEST(Answer, RefusesWhatIsNoText) {
  EXPECT_EQ(std::get<NoCode>(read_source(std::string("a\0b", 3))).rule, "not-text");
  EXPECT_EQ(std::get<NoCode>(read_answer("\xff\xfe")).rule, "not-text");
  EXPECT_EQ(std::get<NoCode>(read_answer("\xc0\x80")).rule, "not-text");
  EXPECT_EQ(std::get<NoCode>(read_answer("\xed\xa0\x80")).rule, "not-text");
  EXPECT_EQ(std::get<NoCode>(read_answer("\xe2\x82")).rule, "not-text");
  EXPECT_EQ(code(read_source("a = '\xe2\x82\xac'\n")), "a = '\xe2\x82\xac'\n");
  EXPECT_EQ(std::get<NoCode>(read_source(std::string(kMaxAnswerBytes + 1, ' '))).rule, "too-long");
}

TEST(Answer, HugeAnswersAreReadInLinearTime) {
  std::string text;
  while (text.size() < kMaxAnswerBytes - 200) text += "```python\n<think>\n'''\n";
  text += "\n</think>\n```python\na = 1\n```\n";
  EXPECT_EQ(code(read_answer(text)), "a = 1\n");
}

TEST(Answer, DistinguishesSourceFromAnswers) {
  EXPECT_EQ(code(read_either("# Fused\nimport torch\n'''\n```python\nx\n```\n'''\n")),
            "# Fused\nimport torch\n'''\n```python\nx\n```\n'''\n");
  EXPECT_EQ(code(read_either("# Answer\n\nHere it is.\n```python\na = 1\n```\n")), "a = 1\n");
  EXPECT_EQ(code(read_either("<think>\nimport torch\n</think>\n```python\na = 1\n```\n")), "a = 1\n");
  EXPECT_EQ(code(read_either("I cannot do this.")), "NoCode: The answer holds no code block.");
  EXPECT_EQ(code(read_either("")), "NoCode: The answer holds no code block.");
  EXPECT_EQ(code(read_either("N = 4\nimport torch\n")), "N = 4\nimport torch\n");
}

// What Python's answer[begin:end] is, of text whose code points are given as UTF-8.
std::string cut(const std::string& text, const Span& span) {
  std::string out;
  size_t point = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++point;
    if (point >= span.begin && point < span.end) out += text[i];
  }
  return out;
}

TEST(AnswerSpans, AreOfTheTextAsItWasHandedIn) {
  struct Case {
    std::string text, plan, code;
  };
  const Case cases[] = {
      {"Tiles of rows.\n```python\nx = 1\n```\nDone.", "Tiles of rows.\n", "x = 1\n"},
      {"<think>größer, 日本語</think>\nSo:\n```python\nx = 'ä'\n```\n", "<think>größer, 日本語</think>",
       "x = 'ä'\n"},
      {"\xef\xbb\xbf\xf0\x9f\x98\x80\r\n```py\r\nx = 1\r\ny = 2\r\n```\r\n",
       "\xef\xbb\xbf\xf0\x9f\x98\x80\r\n", "x = 1\r\ny = 2\r\n"},
      {"```python\nx = 1\n```", "", "x = 1\n"},
      {"first\n```python\na = 1\n```\nsecond\n  ```python\n  b = 2\n  ```",
       "first\n```python\na = 1\n```\nsecond\n", "  b = 2\n"},
      {"thought</think>```python\nx = 1\n```", "thought</think>", "x = 1\n"},
  };
  for (const auto& [text, plan, code] : cases) {
    const Answer answer = read_answer(text);
    if (std::holds_alternative<NoCode>(answer)) continue;  // the last: its fence is not at a line's start
    const auto& found = std::get<Code>(answer);
    EXPECT_EQ(cut(text, found.code), code) << text;
    ASSERT_TRUE(found.plan.has_value()) << text;
    EXPECT_EQ(cut(text, *found.plan), plan) << text;
  }
  const std::string source = "\xef\xbb\xbfx = 'größer'\r\ny = 2";
  const auto& code = std::get<Code>(read_source(source));
  EXPECT_EQ(cut(source, code.code), "x = 'größer'\r\ny = 2");
  EXPECT_FALSE(code.plan.has_value());
}

}  // namespace
}  // namespace nereid::verify
