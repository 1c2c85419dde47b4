#include "nereid/lm/text/utf8.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

std::string lossy(std::string_view bytes) {
  std::string text;
  append_lossy(bytes, text);
  return text;
}

// Replacement characters as R.
std::string marked(std::string_view bytes) {
  std::string text = lossy(bytes);
  for (size_t at = 0; (at = text.find(kReplacement, at)) != std::string::npos; ++at) text.replace(at, 3, "R");
  return text;
}

TEST(Utf8, BrokenTextIsReplacedAsPythonDoesIt) {
  EXPECT_EQ(marked("a\x80z"), "aRz");
  EXPECT_EQ(marked("\xC0\x80"), "RR");            // overlong
  EXPECT_EQ(marked("\xE0\x80\xAF"), "RRR");       // overlong, of three
  EXPECT_EQ(marked("\xED\xA0\x80"), "RRR");       // a surrogate
  EXPECT_EQ(marked("\xF4\x90\x80\x80"), "RRRR");  // above U+10FFFF
  EXPECT_EQ(marked("\xF0\x9F\x98"), "R");         // cut
  EXPECT_EQ(marked("\xF0\x9F\x98!"), "R!");
  EXPECT_EQ(marked("\xE4\xB8\xE4\xB8\xAD"), "R\xE4\xB8\xAD");
  EXPECT_EQ(marked("\xF1\x80\x80\xE1\x80\xC2q\xFF"), "RRRqR");
  EXPECT_EQ(marked("12345678\xFF"), "12345678R");
}

TEST(Utf8, EveryCodePointIsItself) {
  std::string all;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_code_point(c, text);
    ASSERT_EQ(first_code_point(text.data()).value, c);
    ASSERT_EQ(first_code_point(text.data()).length, text.size());
    ASSERT_EQ(last_code_point("x" + text).value, c);
    ASSERT_EQ(utf8_step(text).kind, Utf8Step::kCharacter);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Step step = utf8_step(std::string_view(text).substr(0, cut));
      ASSERT_EQ(step.kind, Utf8Step::kCut);
      ASSERT_EQ(step.length, cut);
    }
    all += text;
  }
  EXPECT_TRUE(is_utf8(all));
  EXPECT_EQ(lossy(all), all);
}

}  // namespace
}  // namespace nereid::lm
