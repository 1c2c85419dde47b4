#include "nereid/lm/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "nereid/lm/tokenizer/word_cache.h"

namespace nereid::lm {
namespace {

// A model of the letters a to d, with random merges.
struct Random {
  explicit Random(uint32_t seed, int merges = 60) : random(seed) {
    model.byte_tokens.fill(kNoToken);
    for (TokenId i = 0; i < 4; ++i) model.byte_tokens[static_cast<size_t>('a' + i)] = i;
    model.merges = MergeTable(static_cast<size_t>(merges));
    TokenId tokens = 4;
    for (int rank = 0; rank < merges; ++rank) {
      const TokenId left = pick(tokens), right = pick(tokens);
      if (model.merges.find(left, right).merged != kNoToken) continue;
      model.merges.add(left, right, {static_cast<uint32_t>(rank), tokens++});
    }
  }
  TokenId pick(TokenId below) { return static_cast<TokenId>(random() % static_cast<uint32_t>(below)); }
  std::string word(size_t length) {
    std::string word;
    for (size_t i = 0; i < length; ++i) word += static_cast<char>('a' + pick(4));
    return word;
  }

  std::mt19937 random;
  BpeModel model;
};

// As it is defined: the lowest rank, leftmost, again and again.
std::vector<TokenId> by_definition(const BpeModel& model, std::string_view word) {
  std::vector<TokenId> tokens;
  for (const char byte : word)
    if (const TokenId token = model.byte_tokens[static_cast<unsigned char>(byte)]; token != kNoToken)
      tokens.push_back(token);
  while (true) {
    MergeTable::Merge best;
    size_t at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const auto merge = model.merges.find(tokens[i], tokens[i + 1]); merge.rank < best.rank)
        best = merge, at = i;
    if (best.merged == kNoToken) return tokens;
    tokens[at] = best.merged;
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, WordsOfEveryLengthMergeByDefinition) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Random made(seed);
    WordMerger merger(made.model);
    for (size_t length = 0; length < 120; ++length) {
      const std::string word = length % 3 == 0 ? std::string(length, 'a') : made.word(length);
      std::vector<TokenId> tokens = {77};
      merger.encode(word, tokens);
      std::vector<TokenId> expected = by_definition(made.model, word);
      expected.insert(expected.begin(), 77);
      ASSERT_EQ(tokens, expected) << "seed " << seed << ", " << word;
    }
  }
}

TEST(Bpe, BytesWithoutATokenVanish) {
  Random made(3);
  WordMerger merger(made.model);
  for (const std::string& word :
       {std::string("axbxc"), "x" + made.word(80) + "x", std::string("xxx"), std::string(90, 'x')}) {
    std::vector<TokenId> tokens;
    merger.encode(word, tokens);
    EXPECT_EQ(tokens, by_definition(made.model, word));
  }
}

TEST(Bpe, AMillionEqualLettersMergeToTheLongestTokens) {
  BpeModel model;
  model.byte_tokens.fill(0);
  model.merges = MergeTable(10);
  for (TokenId i = 0; i < 10; ++i) model.merges.add(i, i, {static_cast<uint32_t>(i), i + 1});
  std::vector<TokenId> tokens;
  WordMerger(model).encode(std::string(size_t{1} << 20, 'a'), tokens);  // quadratic, it would take an hour
  EXPECT_EQ(tokens, std::vector<TokenId>(1024, 10));
}

TEST(Bpe, APairThatIsAddedAgainTakesTheNewRank) {
  MergeTable table(2);
  table.add(1, 2, {0, 5});
  table.add(1, 2, {7, 6});
  EXPECT_EQ(table.find(1, 2).rank, 7u);
  EXPECT_EQ(table.find(1, 2).merged, 6);
  EXPECT_EQ(table.find(2, 1).merged, kNoToken);
  EXPECT_EQ(MergeTable().find(0, 0).merged, kNoToken);
}

TEST(WordCache, KeepsWordsOfEveryLengthApart) {
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + random() % 2);
  WordCache cache;
  const auto tokens_of = [](std::string_view word) {
    std::vector<TokenId> tokens;
    for (size_t i = 0; i < word.size() % 4; ++i)
      tokens.push_back(static_cast<TokenId>(std::hash<std::string_view>()(word) >> 40) +
                       static_cast<TokenId>(i));
    return tokens;
  };
  for (int pass = 0; pass < 2; ++pass)
    for (size_t length = 1; length <= WordCache::kLongestWord + 2; length += length < 40 ? 1 : 17)
      for (size_t at = 0; at + length <= text.size(); at += 13) {
        const std::string_view word = std::string_view(text).substr(at, length);
        // A word reads the same in the middle of a text and at its very end.
        const std::string alone(word);
        const size_t readable = at % 2 == 0 ? text.size() - at : word.size();
        const std::string_view spelled = at % 2 == 0 ? word : std::string_view(alone);
        std::vector<TokenId> tokens;
        if (cache.append(spelled, readable, tokens)) {
          ASSERT_EQ(tokens, tokens_of(word)) << word;
        } else {
          ASSERT_TRUE(pass == 0 || length > WordCache::kLongestWord);
          cache.keep(spelled, readable, tokens_of(word));
        }
      }
}

TEST(WordCache, ForgetsRatherThanGrowsForEver) {
  WordCache cache;
  std::vector<TokenId> tokens;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string word = std::to_string(i);
    cache.keep(word, word.size(), std::array<TokenId, 2>{i, 1});
    ASSERT_TRUE(cache.append(word, word.size(), tokens));
    ASSERT_EQ(tokens, (std::vector<TokenId>{i, 1}));
    tokens.clear();
  }
  EXPECT_FALSE(cache.append("0", 1, tokens));
}

}  // namespace
}  // namespace nereid::lm
