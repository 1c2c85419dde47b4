#include "nereid/lm/serve/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nereid/lm/text/byte_level.h"

namespace nereid::lm {
namespace {

constexpr int64_t kEnd = 256;

// Ids 0 to 255 are the bytes, 256 ends an answer.
std::shared_ptr<const lm::Tokenizer> bytes() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[lm::spelled(std::string(1, static_cast<char>(byte)))] = byte;
  const Json end = {{"id", kEnd}, {"content", "<|end|>"}, {"normalized", false}, {"special", true}};
  const Json document = {
      {"added_tokens", {end}},
      {"normalizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  auto tokenizer = lm::Tokenizer::parse(document.dump(), "test.json");
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

CompletionRequest asked(Endpoint endpoint, size_t prompts, int64_t samples, bool streams) {
  CompletionRequest request{.endpoint = endpoint,
                            .prompts = std::vector<std::vector<int64_t>>(prompts, {1, 2}),
                            .echoes = {},
                            .stops = {}};
  request.generation.samples = samples;
  request.generation.end_tokens = {kEnd};
  request.streams = streams;
  return request;
}

std::vector<Json> events_of(const std::string& text) {
  std::vector<Json> events;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find("\n\n", at);
    const std::string event = text.substr(at, end - at);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    if (event != "data: [DONE]") events.push_back(Json::parse(event.substr(6)));
    at = end + 2;
  }
  return events;
}

// Says `text`, a byte a token; the last ends the choice, or is followed by the end token.
void say(Completion& completion, size_t choice, std::string_view text, bool ends, std::string& events) {
  for (size_t i = 0; i < text.size(); ++i) {
    const lm::Token token{.token = static_cast<unsigned char>(text[i]),
                          .logprob = -0.5f * static_cast<float>(i),
                          .last = !ends && i + 1 == text.size(),
                          .likeliest = {{32, -1.0f}}};
    if (completion.take(choice, token, events)) return;
  }
  if (ends) completion.take(choice, {.token = kEnd, .last = true}, events);
}

TEST(Completion, ChoicesAreThoseOfEachPrompt) {
  auto request = asked(Endpoint::kCompletions, 2, 2, false);
  request.echoes = {"A", "B"};
  Completion completion(request, bytes(), "cmpl-1", "small");
  std::string events;
  for (const size_t choice : {3, 0, 2, 1}) {
    EXPECT_FALSE(completion.done());
    say(completion, choice, fmt::format("text {}", choice), choice % 2 == 0, events);
  }
  EXPECT_TRUE(completion.done() && events.empty());
  const Json body = completion.body();
  std::vector<std::string> texts, ends;
  for (const Json& choice : body["choices"])
    texts.push_back(choice["text"]), ends.push_back(choice["finish_reason"]);
  EXPECT_EQ(texts, (std::vector<std::string>{"Atext 0", "Atext 1", "Btext 2", "Btext 3"}));
  EXPECT_EQ(ends, (std::vector<std::string>{"stop", "length", "stop", "length"}));
  EXPECT_EQ(body["usage"], (Json{{"prompt_tokens", 4}, {"completion_tokens", 26}, {"total_tokens", 30}}));
}

// Sizes that follow from a plan are taken like tokens of the model: in the text, the usage and the
// log-probabilities; each choice has its own plan.
TEST(Completion, SizesAreCompletedInEachChoice) {
  auto request = asked(Endpoint::kChat, 1, 2, false);
  request.task = "x = 1\n";
  request.begun = "<think>\ngiven x [7, 9]\n";
  request.returns_logprobs = true;
  const auto tokenizer = bytes();
  Completion completion(request, tokenizer, "chatcmpl-1", "small");
  lm::CompletionTokens with(tokenizer);
  std::string events;
  size_t tokens = 0;
  for (const size_t choice : {0, 1}) {
    for (const char byte : std::string(choice == 0 ? "#1 relu(x)" : "#1 t(x)")) {
      EXPECT_TRUE(completion.next(choice, with).tokens.empty());
      EXPECT_FALSE(completion.take(choice, {.token = byte}, events));
      ++tokens;
    }
    const auto next = completion.next(choice, with);
    EXPECT_FALSE(completion.take_completed(choice, next.tokens, events));
    EXPECT_TRUE(completion.next(choice, with).tokens.empty());
    tokens += next.tokens.size() + 1;
    completion.take(choice, {.token = kEnd, .last = true}, events);
  }
  ASSERT_TRUE(completion.done());
  const Json body = completion.body();
  EXPECT_EQ(body["choices"][0]["message"]["content"], "#1 relu(x) [7, 9]\n");
  EXPECT_EQ(body["choices"][1]["message"]["content"], "#1 t(x) [9, 7] strides 1, 9\n");
  EXPECT_EQ(body["choices"][0]["logprobs"]["content"].size(), 18u);
  EXPECT_EQ(body["usage"]["completion_tokens"], tokens);
}

TEST(Completion, AStopTextCutsTokensOff) {
  auto request = asked(Endpoint::kCompletions, 1, 1, false);
  request.stops = {"cd"};
  request.returns_logprobs = true;
  request.generation.likeliest = 1;
  Completion completion(request, bytes(), "cmpl-1", "small");
  std::string events;
  say(completion, 0,
      "\xc3\xbc"
      "bcdef",
      false, events);
  const Json choice = completion.body()["choices"][0];
  EXPECT_EQ(choice["text"],
            "\xc3\xbc"
            "b");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["logprobs"]["tokens"], (Json{"bytes:\\xc3", "bytes:\\xbc", "b"}));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], (Json{0.0, -0.5, -1.0}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], (Json{0, 0, 1}));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][2], (Json{{" ", -1.0}, {"b", -1.0}}));
}

// However a text is cut: what a stream says, one event after another, is what the body says at once.
TEST(Completion, AStreamIsTheBodyInPieces) {
  std::mt19937 random(5);
  const auto tokenizer = bytes();
  const std::vector<std::string> pieces = {
      "a", "b", "ab", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff", "\xe2\x82", " ", "\n"};
  for (int turn = 0; turn < 800; ++turn) {
    const Endpoint endpoint = random() % 2 == 0 ? Endpoint::kChat : Endpoint::kCompletions;
    auto request = asked(endpoint, 1, 2, true);
    if (random() % 2 == 0) request.stops = {pieces[random() % 6] + pieces[random() % 6]};
    request.returns_logprobs = random() % 2 == 0;
    request.returns_usage = true;
    Completion stream(request, tokenizer, "x", "m");
    request.streams = false;
    Completion whole(request, tokenizer, "x", "m");
    std::string text = stream.first_events(), nothing;
    for (const size_t choice : {0, 1}) {
      std::string said;
      for (unsigned i = 0; i < 1 + random() % 8; ++i) said += pieces[random() % pieces.size()];
      const bool ends = random() % 2 == 0;
      say(stream, choice, said, ends, text);
      say(whole, choice, said, ends, nothing);
    }
    ASSERT_TRUE(stream.done() && whole.done());
    ASSERT_TRUE(nothing.empty());
    const Json body = whole.body();
    std::vector<std::string> texts(2);
    std::vector<Json> ends(2), tokens(2, Json::array());
    Json usage;
    const char* list = endpoint == Endpoint::kChat ? "content" : "tokens";
    for (const Json& event : events_of(text + stream.last_events())) {
      if (event["choices"].empty()) usage = event["usage"];
      for (const Json& choice : event["choices"]) {
        const size_t index = choice["index"];
        texts[index] += endpoint == Endpoint::kCompletions ? choice["text"].get<std::string>()
                                                           : choice["delta"].value("content", "");
        if (!choice["finish_reason"].is_null()) ends[index] = choice["finish_reason"];
        if (!choice["logprobs"].is_null())
          for (const Json& token : choice["logprobs"][list]) tokens[index].push_back(token);
      }
    }
    ASSERT_EQ(usage, body["usage"]);
    for (const size_t i : {0, 1}) {
      const Json& choice = body["choices"][i];
      const Json& text_of_choice =
          endpoint == Endpoint::kCompletions ? choice["text"] : choice["message"]["content"];
      ASSERT_EQ(texts[i], text_of_choice.get<std::string>());
      ASSERT_EQ(ends[i], choice["finish_reason"].get<std::string>());
      ASSERT_EQ(tokens[i], request.returns_logprobs ? choice["logprobs"][list] : Json::array());
    }
  }
}

}  // namespace
}  // namespace nereid::lm
