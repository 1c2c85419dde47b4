#include "nereid/verify/feedback.h"

#include <gtest/gtest.h>

#include "nereid/base/json.h"

namespace nereid::verify {
namespace {

Verdict wrong(std::string sentence, std::string source = "tl.store(y + i, x)") {
  Verdict verdict;
  verdict.kind = VerdictKind::kUnsafe;
  verdict.candidate = "answer.md";
  verdict.evidence = {{.rule = "out-of-bounds",
                       .sentence = std::move(sentence),
                       .kernel = "gate",
                       .file = "answer.md",
                       .line = 23,
                       .source = std::move(source)},
                      {.rule = "race", .sentence = "Another one."}};
  return verdict;
}

TEST(Feedback, HasVerdictEvidenceAndLine) {
  EXPECT_EQ(
      feedback(wrong("Program 3 writes element 40 of y, which has 32.", "    tl.store(y + i, x)")),
      "Unsafe: Program 3 writes element 40 of y, which has 32.\nLine 23, kernel gate: tl.store(y + i, x)");
  EXPECT_EQ(feedback(wrong("Kernel gate writes past y.")),
            "Unsafe: Kernel gate writes past y.\nLine 23: tl.store(y + i, x)");
  Verdict other = wrong("It raises.", "");
  other.evidence.front().file = "layers.py", other.evidence.front().kernel.clear();
  EXPECT_EQ(feedback(other), "Unsafe: It raises.\nlayers.py, line 23");
  other.evidence.clear();
  EXPECT_EQ(feedback(other), "Unsafe.");
  EXPECT_EQ(to_json(wrong("So."))["feedback"], feedback(wrong("So.")));
}

TEST(Feedback, OfVerifiedAndErrorIsNone) {
  Verdict verdict = wrong("Some.");
  for (const VerdictKind kind : {VerdictKind::kVerified, VerdictKind::kError}) {
    verdict.kind = kind;
    EXPECT_EQ(feedback(verdict), "");
  }
}

TEST(Feedback, LinesOfTheCandidateAreFilledIn) {
  Verdict verdict = wrong("So.", "");
  verdict.evidence.front().line = 2;
  add_source_lines(verdict, "one\n  two\r\nthree");
  EXPECT_EQ(verdict.evidence.front().source, "  two");
  EXPECT_EQ(feedback(verdict), "Unsafe: So.\nLine 2, kernel gate: two");
  Verdict beyond = wrong("So.", ""), other = wrong("So.", "");
  beyond.evidence.front().line = 4, other.evidence.front().file = "layers.py";
  for (Verdict* each : {&beyond, &other}) {
    add_source_lines(*each, "one\ntwo\nthree");
    EXPECT_EQ(each->evidence.front().source, "");
  }
}

TEST(Feedback, IsShortWhateverACandidateWrote) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xc3\xa9\n\x1b\xff`";
  for (const std::string& sentence : {text, std::string(10000, 'x'), std::string("\xe2\x82\xac") + text}) {
    Verdict verdict = wrong(sentence, text);
    verdict.evidence.front().kernel = verdict.evidence.front().file = text;
    verdict.evidence.front().line = 2147483647;
    const std::string said = feedback(verdict);
    EXPECT_LE(said.size(), kMaxFeedback);
    EXPECT_EQ(std::ranges::count(said, '\n'), 1);
    EXPECT_EQ(said.find('\x1b'), said.npos);
    EXPECT_NO_THROW((void)Json(said).dump());  // whole characters
  }
}

}  // namespace
}  // namespace nereid::verify
