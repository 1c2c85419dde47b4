#include "nereid/base/printable.h"

#include <gtest/gtest.h>

#include "nereid/base/json.h"

namespace nereid {
namespace {

TEST(Printable, LeavesWhatAPersonReads) {
  for (const char* text :
       {"", "x + 1", "a\tb", "größer, 日本語, Ωμέγα", "\xf0\x9f\x98\x80", "C:\\x1b is four letters"})
    EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable("a\nb", Lines::kMany), "a\nb");
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("\x1b[31mVerified\x1b[0m"), "\\x1b[31mVerified\\x1b[0m");
  EXPECT_EQ(printable("a\nb\rc\bd\x7f\a"), "a\\nb\\rc\\x08d\\x7f\\x07");
  EXPECT_EQ(printable("a\r\nb", Lines::kMany), "a\\r\nb");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // CSI as one character
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");  // and as a byte
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, EscapesWhatShowsAsSomethingElse) {
  EXPECT_EQ(printable("x\xe2\x80\xaey"), "x\\u202ey");                 // text from right to left
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x81\xa9"), "\\u2066\\u2069");  // isolates
  EXPECT_EQ(printable("a\xe2\x80\x8b"
                      "b\xef\xbb\xbf"),
            "a\\u200bb\\ufeff");
  EXPECT_EQ(printable("a\xe2\x80\xa8"
                      "b"),
            "a\\u2028b");
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");  // a tag
}

TEST(Printable, EscapesBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");           // an overlong zero
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");  // cut short
}

TEST(Printable, NothingThatIsShownIsAControl) {
  uint32_t state = 1;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text;
    for (int i = 0; i < 24; ++i) text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    for (const unsigned char c : printable(text)) EXPECT_TRUE(c == '\t' || (c >= 0x20 && c != 0x7f));
    EXPECT_EQ(printable(printable(text)), printable(text));
  }
}

TEST(PrintableJson, IsTheSameDocument) {
  const Json document = {{"a", "x\x1b[0m\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81 größer"}, {"b", {1, 2}}};
  const std::string shown = printable_json(document.dump());
  EXPECT_EQ(Json::parse(shown), document);
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable_json(document.dump(2)).find('\x7f'), std::string::npos);
}

}  // namespace
}  // namespace nereid
