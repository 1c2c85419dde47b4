#include "nereid/lm/tokenizer/token_prefixes.h"

#include <gtest/gtest.h>

#include <random>
#include <ranges>

#include "nereid/base/json.h"
#include "nereid/lm/text/byte_level.h"

namespace nereid::lm {
namespace {

const std::string kLetters = "ab]\n#";

// Tokens of the letters, of merges between random tokens, and some that are found as they stand.
std::shared_ptr<const Tokenizer> random_tokenizer(std::mt19937& random) {
  std::vector<std::string> tokens;
  Json vocabulary = Json::object(), merges = Json::array(), added = Json::array();
  for (const char letter : kLetters) tokens.emplace_back(1, letter);
  for (int i = 0; i < 12; ++i) {
    const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
    if (std::ranges::find(tokens, left + right) != tokens.end()) continue;
    tokens.push_back(left + right);
    merges.push_back({spelled(left), spelled(right)});
  }
  for (size_t id = 0; id < tokens.size(); ++id) vocabulary[spelled(tokens[id])] = id;
  for (const char* text : {"]\n#", "]\nab #", "\n#", "<|end|>"})
    if (random() % 2 == 0)
      added.push_back({{"id", tokens.size() + added.size()},
                       {"content", text},
                       {"normalized", false},
                       {"special", text[0] == '<'}});
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", random() % 2 == 0 ? "[a-z]+|\\n|[^a-z\\n]+" : "[^#]+|#"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const Json document = {{"added_tokens", added},
                         {"normalizer", nullptr},
                         {"post_processor", nullptr},
                         {"decoder", {{"type", "ByteLevel"}}},
                         {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
                         {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  auto tokenizer = Tokenizer::parse(document.dump(), "test.json");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

std::string random_text(std::mt19937& random, size_t most) {
  std::string text;
  for (size_t left = random() % (most + 1); left > 0; --left) text += kLetters[random() % kLetters.size()];
  return text;
}

std::vector<int64_t> encoded(Encoder& encoder, const std::string& text) {
  std::vector<TokenId> ids;
  EXPECT_TRUE(encoder.encode(text, {.add_special = false}, ids).ok());
  return {ids.begin(), ids.end()};
}

// Whatever comes after a text: its healed tokens come first, and those after them are among the next ones.
TEST(TokenPrefixes, AHealedTextIsTokenizedAsTheWholeText) {
  std::mt19937 random(20261128);
  size_t cut = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const auto tokenizer = random_tokenizer(random);
    const TokenPrefixes prefixes(*tokenizer);
    Encoder encoder(tokenizer);
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(random, 7), more = random_text(random, 6);
      const auto healed = encode_healed(text, encoder, *tokenizer, prefixes);
      ASSERT_TRUE(healed.ok());
      const auto whole = encoded(encoder, text + more);
      ASSERT_LE(healed->tokens.size(), whole.size());
      ASSERT_TRUE(std::ranges::equal(healed->tokens, whole | std::views::take(healed->tokens.size())))
          << turn << " '" << text << "' '" << more << "'";
      std::string rest = healed->rest;
      cut += !rest.empty() && rest != text;
      for (size_t at = healed->tokens.size(); at < whole.size() && !rest.empty(); ++at) {
        const auto next = prefixes.next_tokens(rest);
        ASSERT_TRUE(std::ranges::binary_search(next, whole[at]))
            << turn << " '" << text << "' '" << more << "'";
        const auto bytes = tokenizer->bytes(static_cast<TokenId>(whole[at]));
        rest.erase(0, bytes.size());
      }
    }
  }
  EXPECT_GT(cut, 1000u);
}

// By their definitions, token by token.
TEST(TokenPrefixes, SuffixesAndNextTokensAreThoseOfTheVocabulary) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 20; ++turn) {
    const auto tokenizer = random_tokenizer(random);
    const TokenPrefixes prefixes(*tokenizer);
    for (int i = 0; i < 50; ++i) {
      const std::string text = random_text(random, 6);
      std::vector<size_t> open;
      std::vector<int64_t> next;
      for (size_t length = text.size(); length > 0; --length) {
        bool found = false;
        for (TokenId id = 0; id < tokenizer->size(); ++id)
          found |= !tokenizer->special(id) && tokenizer->bytes(id).size() > length &&
                   tokenizer->bytes(id).starts_with(text.substr(text.size() - length));
        if (found) open.push_back(length);
      }
      for (TokenId id = 0; id < tokenizer->size() && !text.empty(); ++id) {
        const auto bytes = tokenizer->bytes(id);
        if (!bytes.empty() && !tokenizer->special(id) && (bytes.starts_with(text) || text.starts_with(bytes)))
          next.push_back(id);
      }
      EXPECT_EQ(prefixes.open_suffixes(text), open) << text;
      EXPECT_EQ(prefixes.next_tokens(text), next) << text;
    }
  }
}

}  // namespace
}  // namespace nereid::lm
