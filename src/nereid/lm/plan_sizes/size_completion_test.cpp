#include "nereid/lm/plan_sizes/size_completion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nereid/base/json.h"
#include "nereid/lm/text/byte_level.h"

namespace nereid::lm {
namespace {

// Tokens of single bytes, and those over the end of a line that small models have.
std::shared_ptr<const Tokenizer> phrases() {
  Json vocabulary = Json::object(), added = Json::array();
  for (int byte = 0; byte < 256; ++byte) vocabulary[spelled(std::string(1, static_cast<char>(byte)))] = byte;
  for (const char* text : {"]\n#", "]\nreturns #", "]\n"})
    added.push_back(
        {{"id", 256 + added.size()}, {"content", text}, {"normalized", false}, {"special", false}});
  const Json document = {
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  auto tokenizer = Tokenizer::parse(document.dump(), "test.json");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

std::string text_of(const Tokenizer& tokenizer, const std::vector<int64_t>& tokens) {
  return tokenizer.decode(std::vector<TokenId>(tokens.begin(), tokens.end()));
}

// A writer that keeps to what is allowed writes the plan in the tokens of its text as a whole.
TEST(SizeCompletion, ALineEndsInATokenOfTheVocabulary) {
  const auto tokenizer = phrases();
  CompletionTokens with(tokenizer);
  const std::string plan =
      "given x [7, 9], y [9, 5]\n#1 mm(x, y) [7, 5]\n#2 relu(#1) [7, 5]\n#3 sum(#2) []\nreturns #3\n";
  std::vector<TokenId> whole;
  ASSERT_TRUE(with.encoder.encode(plan, {}, whole).ok());
  SizeCompletion sizes("x = 1\n");
  std::vector<int64_t> written;
  std::string text;
  int completed = 0, restricted = 0;
  while (written.size() < whole.size()) {
    const TokenId token = whole[written.size()];
    written.push_back(token);
    const auto next = sizes.push(tokenizer->bytes(token), with);
    completed += static_cast<int>(next.tokens.size());
    written.insert(written.end(), next.tokens.begin(), next.tokens.end());
    if (next.allowed.empty()) continue;
    ++restricted;
    ASSERT_LT(written.size(), whole.size());
    EXPECT_TRUE(std::ranges::binary_search(next.allowed, whole[written.size()]));
  }
  EXPECT_EQ(text_of(*tokenizer, written), plan);
  EXPECT_TRUE(std::ranges::equal(written, whole));
  EXPECT_EQ(completed, 2 * 6 + 2);  // " [7, 5", twice, and " ["
  EXPECT_EQ(restricted, 3);
}

// The rest of a line may come in several tokens.
TEST(SizeCompletion, TheRestIsWrittenPieceByPiece) {
  CompletionTokens with(phrases());
  SizeCompletion sizes("x = 1\n", "given x [7, 9]\n");
  auto next = sizes.push("#1 relu(x)", with);
  EXPECT_EQ(text_of(*with.tokenizer, next.tokens), " [7, 9");
  EXPECT_EQ(next.allowed, (std::vector<int64_t>{']', 256, 257, 258}));
  next = sizes.push("]", with);
  EXPECT_TRUE(next.tokens.empty());
  EXPECT_EQ(next.allowed, (std::vector<int64_t>{'\n'}));
  next = sizes.push("\n", with);
  EXPECT_TRUE(next.tokens.empty() && next.allowed.empty());
  next = sizes.push("#2 relu(#1)", with);
  EXPECT_EQ(text_of(*with.tokenizer, next.tokens), " [7, 9");
  // Text that does not go on with the rest ends the completion of this line alone.
  next = sizes.push("?\n", with);
  EXPECT_TRUE(next.tokens.empty() && next.allowed.empty());
}

}  // namespace
}  // namespace nereid::lm
