#include "nereid/lm/tokenizer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/base/json.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {
namespace {

using testing::HasSubstr;

std::vector<std::string> merges_of(const std::string& text) {
  std::vector<std::string> merges;
  const Json document = Json::parse(text);
  for (const Json& pair : document.at("model").at("merges"))
    merges.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
  return merges;
}

TEST(Trainer, TheCommonestPairFirstThenTheLowest) {
  Trainer trainer({.vocabulary = 300});
  trainer.add("low low low lower lowest newest newest");
  EXPECT_EQ(trainer.distinct_words(), 5u);  // the first "low" has no space before it
  const auto text = trainer.train();
  ASSERT_TRUE(text.ok());
  const auto merges = merges_of(*text);
  // "lo" and "ow" five times, "l" the lower; then "low"; then " low" four times.
  EXPECT_THAT(std::vector<std::string>(merges.begin(), merges.begin() + 3),
              testing::ElementsAre("l o", "lo w", "\u0120 low"));
}

TEST(Trainer, WhatItWritesEncodesItsTextsBack) {
  const std::string corpus = "the cat sat on the mat; the caf\u00E9 \u4E2D\u6587 \xFF the end\n\n";
  for (const TokenizerFamily family :
       {TokenizerFamily::kQwen, TokenizerFamily::kLlama3, TokenizerFamily::kCode}) {
    Trainer trainer({.family = family, .vocabulary = 280, .special = {"<|end|>"}});
    for (int i = 0; i < 3; ++i) trainer.add(corpus);
    const auto text = trainer.train();
    ASSERT_TRUE(text.ok());
    const auto tokenizer = Tokenizer::parse(*text, "trained");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    EXPECT_EQ((*tokenizer)->size(), 280);
    EXPECT_EQ((*tokenizer)->find("<|end|>"), 0);
    std::vector<TokenId> ids;
    ASSERT_TRUE(Encoder(*tokenizer).encode(corpus + "<|end|>", {}, ids).ok());
    EXPECT_EQ(ids.back(), 0);
    EXPECT_LT(ids.size(), corpus.size());
    EXPECT_THAT((*tokenizer)->decode(ids), HasSubstr("caf\u00E9 \u4E2D\u6587 \uFFFD the end"));
    EXPECT_EQ(*trainer.train(), *text);  // the same again
  }
}

TEST(Trainer, NamesOfCodeAreWords) {
  Trainer trainer({.family = TokenizerFamily::kCode, .vocabulary = 1000});
  trainer.add("    x_ptr = tl.load(x_ptr + 128)\n    x_ptr = tl.load(x_ptr + 128)\n");
  // Indent, x_ptr, " = ", tl, ".load", "(", " + ", 1, 2, 8, ")", "\n    ", "\n"
  EXPECT_EQ(trainer.distinct_words(), 13u);
}

TEST(Trainer, PhrasesAreTokensAndNamesAreCutAlike) {
  const std::string line = "    gate = tl.load(gate_ptr + i, mask=i < 480, other=0)\n";
  Trainer trainer({.family = TokenizerFamily::kCode,
                   .vocabulary = 400,
                   .special = {"<|end|>"},
                   .phrases = 16,
                   .phrase_words = {"tl", "load", "mask", "other", "i"}});
  for (int i = 0; i < 9; ++i) trainer.add(line + line);
  const auto text = trainer.train();
  ASSERT_TRUE(text.ok());
  const auto tokenizer = Tokenizer::parse(*text, "trained");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto encoded = [&](const std::string& of) {
    std::vector<TokenId> ids;
    EXPECT_TRUE(Encoder(*tokenizer).encode(of, {}, ids).ok());
    EXPECT_EQ((*tokenizer)->decode(ids), of);
    return ids;
  };
  for (const char* phrase : {" = tl.load(", " + i, mask=i < "}) {
    ASSERT_EQ(encoded(phrase).size(), 1u) << phrase;
    EXPECT_FALSE((*tokenizer)->special(encoded(phrase)[0])) << phrase;
  }
  EXPECT_GT(encoded(", other=0").size(), 1u);  // it would end with a digit
  EXPECT_GT(encoded("gate = ").size(), 1u);    // a name is of none
  EXPECT_EQ(encoded("x = tl.load(gate_ptr + i, mask=i < 7, other=0)\n    <|end|>").back(), 0);
  EXPECT_EQ(*trainer.train(), *text);
}

TEST(Trainer, NamesWithDigitsAreOfPhrasesAsAWhole) {
  Trainer trainer({.family = TokenizerFamily::kCode,
                   .vocabulary = 400,
                   .phrases = 12,
                   .phrase_words = {"tl", "to", "float32", "tf32x3", "input_precision"}});
  for (int i = 0; i < 9; ++i)
    trainer.add("a.to(tl.float32), input_precision=\"tf32x3\"); b.to(tl.float16); c32, tf32, 32\n");
  const auto text = trainer.train();
  ASSERT_TRUE(text.ok());
  std::string phrases;
  const Json document = Json::parse(*text);
  for (const Json& token : document.at("added_tokens")) phrases += token.at("content").get<std::string>();
  EXPECT_THAT(phrases, HasSubstr(".to(tl.float32), input_precision=\"tf32x3\")"));
  EXPECT_THAT(phrases, testing::Not(HasSubstr("16")));
  EXPECT_THAT(phrases, testing::Not(HasSubstr("tf32,")));
  EXPECT_THAT(phrases, testing::Not(HasSubstr("32\n")));
}

TEST(Trainer, WholePhrasesAreTokensAndTeachNothingElse) {
  const std::string helper = "def f(x):\n    return x * 2.0**-11\n", longer = helper + "\n\n";
  Trainer trainer({.family = TokenizerFamily::kCode,
                   .vocabulary = 300,
                   .phrases = 4,
                   .phrase_words = {"tl", "load", "return"},
                   .whole_phrases = {helper, longer}});
  for (int i = 0; i < 9; ++i) trainer.add("a = tl.load(b)\n" + longer + "c = tl.load(d)\n" + helper);
  const auto text = trainer.train();
  ASSERT_TRUE(text.ok());
  const auto tokenizer = Tokenizer::parse(*text, "trained");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto count = [&](const std::string& of) {
    std::vector<TokenId> ids;
    EXPECT_TRUE(Encoder(*tokenizer).encode(of, {}, ids).ok());
    EXPECT_EQ((*tokenizer)->decode(ids), of);
    return ids.size();
  };
  EXPECT_EQ(count(helper), 1u);
  EXPECT_EQ(count(longer), 1u);  // the longest where two begin
  EXPECT_EQ(count(longer + helper), 2u);
  EXPECT_EQ(count(" = tl.load("), 1u);
  EXPECT_EQ(count("def"), 3u);  // only in the helper, so no merge is learnt from it
}

TEST(Trainer, StopsWhereTextsGiveOut) {
  Trainer trainer({.vocabulary = 100'000, .min_frequency = 2});
  trainer.add("aaaa bb aaaa");
  const auto text = trainer.train();
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(merges_of(*text), testing::ElementsAre("a a", "aa aa"));
}

TEST(Trainer, WhatIsRefused) {
  const auto refusal = [](const TrainerOptions& options) { return Trainer(options).train().error().message; };
  EXPECT_THAT(refusal({.vocabulary = 256, .special = {"<a>"}}), HasSubstr("expected at least 257"));
  EXPECT_THAT(refusal({.special = {""}}), HasSubstr("special token ''"));
  EXPECT_THAT(refusal({.special = {"<a>", "<a>"}}), HasSubstr("special token '<a>'"));
  EXPECT_THAT(refusal({.special = {"x"}}), HasSubstr("special token 'x'"));
  const auto phrases = [&](std::vector<std::string> whole) {
    Trainer trainer({.family = TokenizerFamily::kCode, .whole_phrases = std::move(whole)});
    trainer.add("a b c");
    return trainer.train().error().message;
  };
  EXPECT_THAT(phrases({""}), HasSubstr("phrase \"\""));
  EXPECT_THAT(phrases({"a b", "a b"}),
              HasSubstr("phrase \"a b\": expected one that is not empty, given once"));
}

}  // namespace
}  // namespace nereid::lm
