#include "nereid/lm/text/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/lm/text/word_scanner.h"

namespace nereid::lm {
namespace {

using testing::HasSubstr;
using Matcher = Pattern::Matcher;

Pattern compiled(std::string_view pattern) {
  auto translated = to_pcre2(pattern);
  EXPECT_TRUE(translated.ok()) << (translated.ok() ? "" : translated.error().message);
  auto made = Pattern::compile(*translated);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return *std::move(made);
}

// The first match, or "-".
std::string found(std::string_view pattern, std::string_view text) {
  const Pattern made = compiled(pattern);
  auto match = Matcher(made).find(text, 0);
  EXPECT_TRUE(match.ok());
  return match->begin == Matcher::npos ? "-"
                                       : std::string(text.substr(match->begin, match->end - match->begin));
}

std::string refusal(std::string_view pattern) {
  const auto translated = to_pcre2(pattern);
  return translated.ok() ? "translated to " + *translated : translated.error().message;
}

TEST(Pattern, WhatBothEnginesReadAlike) {
  EXPECT_EQ(found("b+c?|x", "abbd"), "bb");
  EXPECT_EQ(found("(?i:'S)", "it's"), "'s");
  EXPECT_EQ(found("(?i:'s)", "'\u017F"), "'\u017F");
  EXPECT_EQ(found("(?:ab){2,}?", "ababab"), "abab");
  EXPECT_EQ(found("a++b(?=c)", "aabc"), "aab");
  EXPECT_EQ(found("[^\\r\\n\\p{L}\\p{N}]?\\p{L}+", "12 ab"), " ab");
  EXPECT_EQ(found("\\.\\-\\]", "a.-]"), ".-]");
}

TEST(Pattern, WhatIsTranslated) {
  EXPECT_EQ(found("\\s", "\u180E\u2003"), "\u2003");
  EXPECT_EQ(found("[^\\s]", " \u180E"), "\u180E");
  EXPECT_EQ(found("\\S", "\u3000x"), "x");
  EXPECT_EQ(found("\\p{L}+", "1\U00010D4A\U00010D4B"), "\U00010D4A\U00010D4B");
  EXPECT_EQ(found("\\P{L}", "\U00010D4A1"), "1");
  EXPECT_EQ(found("\\p{^L}", "a1"), "1");
  EXPECT_EQ(found("[\\d]+", "x\u0663\U0001CCF0"), "\u0663\U0001CCF0");
  EXPECT_EQ(found("^b$", "a\nb\nc"), "b");
  EXPECT_EQ(found("a.b", "a\nb"), "-");
  EXPECT_EQ(found("(?m:a.b)", "a\nb"), "a\nb");
  EXPECT_EQ(found("\\x41\\u00e9", "A\u00E9"), "A\u00E9");
  EXPECT_EQ(found("\\v", "\n\v"), "\v");
  EXPECT_EQ(found("\\p{Han}+", "\u30FC\u4E2D\u6587"), "\u4E2D\u6587");  // U+30FC is Han by extension only
}

TEST(Pattern, WhatIsReadDifferentlyIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("ab\\bc"), HasSubstr("at character 2 of ab\\bc: the escape \\b"));
  EXPECT_THAT(refusal("(a)\\1"), HasSubstr("the escape \\1"));
  EXPECT_THAT(refusal("\\h"), HasSubstr("the escape \\h"));
  EXPECT_THAT(refusal("[a[b]]"), HasSubstr("a set in a set"));
  EXPECT_THAT(refusal("[a-z&&b]"), HasSubstr("intersection"));
  EXPECT_THAT(refusal("[\\S]"), HasSubstr("\\S inside a set"));
  EXPECT_THAT(refusal("a{1,2}+"), HasSubstr("followed by '+'"));
  EXPECT_THAT(refusal("a{2}?"), HasSubstr("followed by '?'"));
  EXPECT_THAT(refusal("a{,2}"), HasSubstr("not an interval"));
  EXPECT_THAT(refusal("(?i)a"), HasSubstr("this kind"));
  EXPECT_THAT(refusal("(?<n>a)"), HasSubstr("this kind"));
  EXPECT_THAT(refusal("(?i:pass)"), HasSubstr("'ss'"));
  EXPECT_THAT(refusal("(?i:[a])"), HasSubstr("case-insensitive set"));
  EXPECT_THAT(refusal("(?i:\\p{Lu})"), HasSubstr("case-insensitive category"));
  EXPECT_THAT(refusal("\\p{Alpha}"), HasSubstr("the property 'Alpha'"));
  EXPECT_THAT(refusal("(a"), HasSubstr("the end of the pattern inside a group"));
  EXPECT_THAT(refusal("a)"), HasSubstr("nothing opened"));
  EXPECT_THAT(refusal("[a"), HasSubstr("inside a set"));
  EXPECT_THAT(refusal("a\\"), HasSubstr("lone '\\'"));
  EXPECT_EQ(to_pcre2("(?i:a)ss").ok(), true);  // the group ends, and with it what it ignores
}

TEST(Pattern, WhatPcre2Refuses) {
  EXPECT_THAT(Pattern::compile("a*").error().message, HasSubstr("matches the empty text"));
  EXPECT_THAT(Pattern::compile("+").error().message, HasSubstr("at byte 0 of +"));
}

TEST(Pattern, QuotedTextIsItself) {
  const std::string text = "a.b*[c]\\d^$|(x){2}?+-#";
  const auto made = Pattern::compile(quoted_pattern(text));
  ASSERT_TRUE(made.ok());
  auto match = Matcher(*made).find("__" + text, 0);
  EXPECT_EQ(match->begin, 2u);
  EXPECT_EQ(match->end, 2 + text.size());
}

TEST(Pattern, LongMatchesNeedNoStack) {
  const std::string text(size_t{4} << 20, 'a');
  EXPECT_EQ(found(kQwenPattern, text).size(), text.size());
  EXPECT_EQ(found("(?:a|b)+", text).size(), text.size());
}

}  // namespace
}  // namespace nereid::lm
