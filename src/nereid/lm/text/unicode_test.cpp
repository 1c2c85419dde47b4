#include "nereid/lm/text/unicode.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

uint8_t class_of(uint32_t c) {
  return unicode_class(unicode_table(), c) & (kLetter | kNumber | kSpace | kWordCharacter);
}

std::string nfc(std::string_view text) {
  std::string out;
  append_nfc(text, out);
  EXPECT_EQ(may_need_nfc(text) || out == text, true) << text;
  return out;
}

TEST(Unicode, Classes) {
  EXPECT_EQ(class_of('a'), kLetter | kWordCharacter);
  EXPECT_EQ(class_of('7'), kNumber | kWordCharacter);
  EXPECT_EQ(class_of('_'), kWordCharacter);
  EXPECT_EQ(class_of('+'), 0);
  EXPECT_EQ(class_of(0xBD), kNumber);          // one half
  EXPECT_EQ(class_of(0x3000), kSpace);         // the ideographic space
  EXPECT_EQ(class_of(0x180E), 0);              // the Mongolian vowel separator is no space any more
  EXPECT_EQ(class_of(0x301), kWordCharacter);  // a mark
  EXPECT_EQ(class_of(0x10D4A), kLetter | kWordCharacter);  // of Unicode 16
  EXPECT_EQ(class_of(0x1CCF0), kNumber | kWordCharacter);
  EXPECT_EQ(class_of(0xE0100), kWordCharacter);
  EXPECT_EQ(class_of(0x10FFFF), 0);
}

TEST(Unicode, NormalForm) {
  EXPECT_EQ(nfc(""), "");
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("cafe\u0301!"), "caf\u00E9!");
  EXPECT_EQ(nfc("\u00E9\u0323"), "\u1EB9\u0301");  // marks change places
  EXPECT_EQ(nfc("\u212B\u2126"), "\u00C5\u03A9");  // singletons
  EXPECT_EQ(nfc("\u1100\u1161\u11A8 \uAC00\u11A8"), "\uAC01 \uAC01");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");  // never composed
  EXPECT_EQ(nfc("\u0301a\u0301\u0301"), "\u0301\u00E1\u0301");
  EXPECT_EQ(nfc("x\U00011131\U00011127y"), "x\U0001112Ey");  // a second half that is a starter
  // A mark that the normalizer's Unicode version does not know stays where it is, and holds others back.
  EXPECT_EQ(nfc("a\u0C3C\u0301"), "a\u0C3C\u0301");
  EXPECT_EQ(nfc("e\u0301\u0C3Ce\u0301"), "\u00E9\u0C3C\u00E9");
}

TEST(Unicode, NormalFormIsOfTheWholeTextWhereverItIsCut) {
  // A settled piece between two unsettled ones does not separate them.
  std::string text, expected;
  for (int i = 0; i < 50; ++i) text += "o\u0308 - \u4E2D", expected += "\u00F6 - \u4E2D";
  EXPECT_EQ(nfc(text), expected);
}

}  // namespace
}  // namespace nereid::lm
