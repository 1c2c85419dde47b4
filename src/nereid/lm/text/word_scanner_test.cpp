#include "nereid/lm/text/word_scanner.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "nereid/lm/text/pre_tokenizer.h"

namespace nereid::lm {
namespace {

using Words = std::vector<std::string>;

Words scanned(std::string_view text, int digits) {
  Words words;
  for (WordScanner scanner(text, digits); !scanner.done();) words.emplace_back(scanner.next());
  return words;
}

// The same by PCRE2.
class Expression {
 public:
  explicit Expression(std::string_view pattern) {
    cuts_.steps.push_back({*Pattern::compile(*to_pcre2(pattern)), SplitBehavior::kIsolated, false});
    run_ = std::make_unique<PreTokenizerRun>(cuts_);
  }
  Words words(std::string_view text) {
    Words words;
    EXPECT_TRUE(run_->words(text, [&](std::string_view word) { words.emplace_back(word); }).ok());
    return words;
  }

 private:
  PreTokenizer cuts_;
  std::unique_ptr<PreTokenizerRun> run_;
};

TEST(WordScanner, Words) {
  EXPECT_EQ(scanned("Hello world, it's 2024!\n\n  end ", 1),
            (Words{"Hello", " world", ",", " it", "'s", " ", "2", "0", "2", "4", "!\n\n", " ", " end", " "}));
  EXPECT_EQ(scanned("12345 x", 3), (Words{"123", "45", " x"}));
  EXPECT_EQ(scanned("a \r\n \tb", 1), (Words{"a", " \r\n", " ", "\tb"}));
  EXPECT_EQ(scanned("", 1), Words{});
}

// Every text of up to five characters of an alphabet that has one of each class, and letters of contractions.
TEST(WordScanner, IsTheExpressionOnAllShortTexts) {
  const std::array<std::string_view, 12> alphabet = {"s",  "L",      "e", "'",      " ", "\n",
                                                     "\r", "\u00A0", "7", "\u0663", "!", "\u017F"};
  Expression qwen(kQwenPattern), llama(kLlama3Pattern);
  size_t count = 1;
  for (int length = 1; length <= 5; ++length) {
    count *= alphabet.size();
    // All texts of four; of five every seventh.
    for (size_t n = 0; n < count; n += length == 5 ? 7 : 1) {
      std::string text;
      for (size_t left = n, i = 0; i < static_cast<size_t>(length); ++i, left /= alphabet.size())
        text += alphabet[left % alphabet.size()];
      ASSERT_EQ(scanned(text, 1), qwen.words(text)) << testing::PrintToString(text);
      ASSERT_EQ(scanned(text, 3), llama.words(text)) << testing::PrintToString(text);
    }
  }
}

TEST(WordScanner, IsTheExpressionOnEveryCharacter) {
  Expression qwen(kQwenPattern);
  std::string text;
  for (uint32_t c = 1; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    if (c >= kUnicodeTableSize && c % 97 != 0) continue;
    append_code_point(c, text);
    text += c % 2 == 0 ? "a" : " 1";
    append_code_point(c, text);
    if (text.size() > 4000) {
      ASSERT_EQ(scanned(text, 1), qwen.words(text)) << "before U+" << std::hex << c;
      text.clear();
    }
  }
}

TEST(WordScanner, IsTheExpressionOnLongRandomTexts) {
  Expression llama(kLlama3Pattern);
  std::mt19937 random(1);
  const std::array<std::string_view, 10> pieces = {"the",    " ",  "\n", "'ll", "12",
                                                   "\u4E2D", "  ", "?!", "\t",  "\u0301"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += pieces[random() % pieces.size()];
    ASSERT_EQ(scanned(text, 3), llama.words(text)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace nereid::lm
