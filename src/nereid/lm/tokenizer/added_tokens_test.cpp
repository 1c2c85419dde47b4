#include "nereid/lm/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

// Pieces as "text" or "[id:text]".
std::string split(const AddedTokenFinder& finder, std::string_view text, bool leave_special = false) {
  std::vector<AddedTokenFinder::Piece> pieces;
  finder.split(text, leave_special, pieces);
  std::string out;
  for (const auto& piece : pieces) {
    if (!out.empty()) out += '|';
    out += piece.token == kNoToken ? std::string(piece.text)
                                   : "[" + std::to_string(piece.token) + ":" + std::string(piece.text) + "]";
  }
  return out;
}

AddedTokenFinder finder_of(const std::vector<AddedToken>& tokens) {
  AddedTokenFinder finder;
  for (const AddedToken& token : tokens) finder.add(token, token.content);
  return finder;
}

TEST(AddedTokens, TheFirstPlaceThenTheLongest) {
  const auto finder =
      finder_of({{.id = 1, .content = "<a>"}, {.id = 2, .content = "<a>b"}, {.id = 3, .content = "xx"}});
  EXPECT_EQ(split(finder, "<a>bc<a>"), "[2:<a>b]|c|[1:<a>]");
  EXPECT_EQ(split(finder, "xxx<"), "[3:xx]|x<");
  EXPECT_EQ(split(finder, "<<a><a"), "<|[1:<a>]|<a");
  EXPECT_EQ(split(finder, "none"), "none");
  EXPECT_EQ(split(finder, ""), "");
  EXPECT_EQ(split(AddedTokenFinder(), "text"), "text");
}

TEST(AddedTokens, WhatTheyTakeInAndWhatTheyLeave) {
  const auto finder = finder_of({{.id = 1, .content = "<l>", .lstrip = true},
                                 {.id = 2, .content = "<r>", .rstrip = true},
                                 {.id = 3, .content = "one", .single_word = true},
                                 {.id = 4, .content = "<s>", .special = true}});
  EXPECT_EQ(split(finder, "a \u3000<l> b"), "a|[1: \u3000<l>]| b");
  EXPECT_EQ(split(finder, "a <r> \n<l>b"), "a |[2:<r> \n]|[1:<l>]|b");
  EXPECT_EQ(split(finder, "one onex (one) \u00E9one one\u0301 one"),
            "[3:one]| onex (|[3:one]|) \u00E9one one\u0301 |[3:one]");
  EXPECT_EQ(split(finder, "<s>a<r>"), "[4:<s>]|a|[2:<r>]");
  EXPECT_EQ(split(finder, "<s>a<r>", true), "<s>a|[2:<r>]");
}

TEST(AddedTokens, OfTwoWithOneTextTheFirst) {
  EXPECT_EQ(split(finder_of({{.id = 1, .content = "t"}, {.id = 2, .content = "t"}}), "t"), "[1:t]");
}

}  // namespace
}  // namespace nereid::lm
