#include "nereid/lm/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nereid/base/json.h"
#include "nereid/lm/text/byte_level.h"
#include "nereid/lm/text/utf8.h"
#include "nereid/lm/text/word_scanner.h"

namespace nereid::lm {
namespace {

using testing::HasSubstr;
using Ids = std::vector<TokenId>;

// Ids 0 to 255 are the bytes, then "he" "ll" "hell" " w", then the added tokens.
Json document() {
  Json vocabulary = Json::object();
  TokenId next = 0;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[spelled(std::string(1, static_cast<char>(byte)))] = next++;
  for (const char* token : {"he", "ll", "hell", "\u0120w", "whole"}) vocabulary[token] = next++;
  const auto added = [&](const char* content, bool special) {
    return Json{{"id", next++}, {"content", content}, {"normalized", false}, {"special", special}};
  };
  return {{"added_tokens", {added("<|begin|>", true), added("<think>", false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", {{"Regex", kQwenPattern}}}, {"behavior", "Isolated"}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"h e", "l l", {"he", "ll"}, "\u0120 w"}}}}};
}

std::shared_ptr<const Tokenizer> made(const Json& json = document()) {
  auto tokenizer = Tokenizer::parse(json.dump(), "test.json");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

Ids encoded(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text,
            EncodeOptions options = {}) {
  Ids ids;
  EXPECT_TRUE(Encoder(tokenizer).encode(text, options, ids).ok());
  return ids;
}

TEST(Tokenizer, EncodesAndDecodes) {
  const auto tokenizer = made();
  EXPECT_EQ(tokenizer->size(), 263);
  EXPECT_EQ(encoded(tokenizer, "hello w"), (Ids{258, 'o', 259}));
  EXPECT_EQ(encoded(tokenizer, ""), Ids{});
  EXPECT_EQ(encoded(tokenizer, "<|begin|>he<think>"), (Ids{261, 256, 262}));
  EXPECT_EQ(encoded(tokenizer, "e\u0301"), encoded(tokenizer, "\u00E9"));
  EXPECT_EQ(encoded(tokenizer, "\xFF"), encoded(tokenizer, kReplacement));
  EXPECT_EQ(tokenizer->find("\u0120w"), 259);
  EXPECT_EQ(tokenizer->bytes(259), " w");
  EXPECT_EQ(tokenizer->find("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->decode(Ids{261, 258, 'o', 259, 262}), "<|begin|>hello w<think>");
  EXPECT_EQ(tokenizer->decode(Ids{261, 258, 'o', 259, 262}, true), "hello w<think>");
  EXPECT_EQ(tokenizer->decode(Ids{-1, 1000, 'o'}), "o");
  EXPECT_EQ(tokenizer->decode(Ids{0xC3}), kReplacement);
}

TEST(Tokenizer, SpecialTokensOfUntrustedText) {
  const auto tokenizer = made();
  const Ids ids = encoded(tokenizer, "<|begin|><think>", {.leave_special = true});
  EXPECT_EQ(ids.back(), 262);
  EXPECT_EQ(std::ranges::count(ids, 261), 0);
  EXPECT_EQ(tokenizer->decode(ids), "<|begin|><think>");
}

TEST(Tokenizer, WhatIsPutAroundAText) {
  Json json = document();
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<|begin|>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", Json::array()},
      {"special_tokens", {{"<|begin|>", {{"id", "<|begin|>"}, {"ids", {261}}, {"tokens", {"<|begin|>"}}}}}}};
  const auto tokenizer = made(json);
  EXPECT_EQ(encoded(tokenizer, "he"), (Ids{261, 256}));
  EXPECT_EQ(encoded(tokenizer, "he", {.add_special = false}), (Ids{256}));
  json["post_processor"]["special_tokens"]["<|begin|>"]["ids"] = {263};
  EXPECT_THAT(Tokenizer::parse(json.dump(), "t.json").error().message,
              HasSubstr("ids[0]: expected an integer from 0 to 262, got 263"));
}

TEST(Tokenizer, WholeWordsWhereMergesAreIgnored) {
  Json json = document();
  EXPECT_EQ(encoded(made(json), "whole").size(), 5u);
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(encoded(made(json), "whole hello"), (Ids{260, ' ', 258, 'o'}));
}

TEST(Tokenizer, AnEncoderThatRemembersGivesTheSame) {
  const auto tokenizer = made();
  Encoder encoder(tokenizer);
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += "hel o w\n1"[random() % 9];
    Ids ids;
    ASSERT_TRUE(encoder.encode(text, {}, ids).ok());
    ASSERT_EQ(ids, encoded(tokenizer, text));
    ASSERT_EQ(tokenizer->decode(ids), text);
  }
}

// However a text is cut into tokens, what comes out piece by piece is what comes out at once, and never half
// a character.
TEST(StreamDecoder, GivesWholeCharactersAndTheSameText) {
  const auto tokenizer = made();
  std::mt19937 random(1);
  const std::string bytes = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xFF\xE0\xED\xA0";
  for (int round = 0; round < 5000; ++round) {
    Ids ids;
    for (int i = 0; i < 8; ++i)
      ids.push_back(round % 2 == 0 ? static_cast<unsigned char>(bytes[random() % bytes.size()])
                                   : static_cast<TokenId>(random() % 263));
    const bool skip = round % 3 == 0;
    StreamDecoder stream(tokenizer, skip);
    std::string text;
    for (const TokenId id : ids) {
      const std::string piece = stream.push(id);
      ASSERT_TRUE(is_utf8(piece));
      text += piece;
    }
    text += stream.finish();
    ASSERT_EQ(text, tokenizer->decode(ids, skip)) << testing::PrintToString(ids);
  }
}

TEST(StreamDecoder, HoldsBackOnlyWhatMayStillBeACharacter) {
  StreamDecoder stream(made());
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push('b'), std::string(kReplacement) + "b");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push(0xA9), "\u00E9");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.finish(), kReplacement);
  EXPECT_EQ(stream.finish(), "");
}

TEST(TokenizerFile, ErrorsNameThePlace) {
  const auto refusal = [](const std::function<void(Json&)>& change) {
    Json json = document();
    change(json);
    const auto tokenizer = Tokenizer::parse(json.dump(), "t.json");
    return tokenizer.ok() ? "read" : tokenizer.error().message;
  };
  EXPECT_EQ(refusal([](Json&) {}), "read");
  EXPECT_THAT(refusal([](Json& j) { j["model"]["byte_fallback"] = true; }),
              HasSubstr("t.json.model.byte_fallback"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["merges"][1] = "l zz"; }),
              HasSubstr("t.json.model.merges[1]: 'zz' is not in"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"]["he"] = 3; }),
              HasSubstr("the id 3 has a token already"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"]["he"] = "x"; }),
              HasSubstr("t.json.model.vocab.he: expected an id"));
  EXPECT_THAT(refusal([](Json& j) { j["added_tokens"][1]["id"] = 5; }),
              HasSubstr("t.json.added_tokens[1].id"));
  EXPECT_THAT(refusal([](Json& j) { j["added_tokens"][1]["content"] = ""; }),
              HasSubstr("added_tokens[1].content"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"].erase("a"), j["model"]["unk_token"] = "he"; }),
              HasSubstr("unk_token"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["merges"][2] = {"l", "l", "l"}; }),
              HasSubstr("t.json.model.merges[2]: expected two tokens"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["merges"][1] = {{"l", 1}}; }),
              HasSubstr("t.json.model.merges[1]: expected two tokens"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["merges"][1] = {"l", ""}; }),
              HasSubstr("t.json.model.merges[1]: expected two tokens"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["merges"] = 5; }),
              HasSubstr("t.json.model.merges: expected an array"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"]["he"] = {1}; }),
              HasSubstr("t.json.model.vocab.he: expected an id"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"]["he"] = 1e9; }),
              HasSubstr("t.json.model.vocab.he: expected an id"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["vocab"] = {1}; }),
              HasSubstr("t.json.model.vocab: expected an object"));
  EXPECT_THAT(refusal([](Json& j) { j.erase("model"); }), HasSubstr("t.json"));
  EXPECT_THAT(Tokenizer::parse("{", "t.json").error().message, HasSubstr("t.json"));
  EXPECT_THAT(
      Tokenizer::parse(R"({"model": {"vocab": {"a": 1, "a": 2}, "type": "BPE"}})", "t.json").error().message,
      HasSubstr("spelled twice"));
  EXPECT_THAT(Tokenizer::parse(std::string(100, '['), "t.json").error().message, HasSubstr("nested deeper"));
  EXPECT_THAT(Tokenizer::load("/nowhere/t.json").error().message, HasSubstr("/nowhere/t.json"));
}

}  // namespace
}  // namespace nereid::lm
