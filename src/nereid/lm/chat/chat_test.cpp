#include "nereid/lm/chat/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

using testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

std::string rendered(const Messages& messages, ChatOptions options = {}) {
  const auto text = render_chat({}, messages, options);
  return text.ok() ? *text : "error: " + text.error().message;
}

TEST(Chat, OneQuestion) {
  const Messages messages = {{"system", "Be brief."}, {"user", "Hi"}};
  const std::string start = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n";
  EXPECT_EQ(rendered(messages), start + "<|im_start|>assistant\n");
  EXPECT_EQ(rendered(messages, {.thinking = false}),
            start + "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(rendered(messages, {.add_generation_prompt = false}), start);
}

TEST(Chat, EarlierThinkingIsLeftOutAndTheLastIsKept) {
  const std::string thought = "<think>\nhm\n</think>\n\nyes";
  const ChatOptions as_it_is = {.add_generation_prompt = false};
  EXPECT_EQ(
      rendered({{"user", "a"}, {"assistant", thought}, {"user", "b"}, {"assistant", thought}}, as_it_is),
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
      "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nyes<|im_end|>\n");
  EXPECT_EQ(rendered({{"user", "a"}, {"assistant", "\nplain"}}, as_it_is),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nplain<|im_end|>\n");
  EXPECT_EQ(rendered({{"user", "a"}, {"assistant", "yes", "\nhm\n"}}, as_it_is),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nyes<|im_end|>\n");
  // Two messages in a row: the first of them has no thinking to keep.
  EXPECT_EQ(rendered({{"user", "a"}, {"assistant", "\nx"}, {"assistant", "y"}}, as_it_is),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n\nx<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\ny<|im_end|>\n");
}

// As OpenAI's clients put it.
TEST(Chat, PartsOfATextAreOne) {
  const Json json = Json::parse(
      R"([{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],)"
      R"("tool_calls": null}])");
  const auto messages = chat_messages(json, "chat.json");
  ASSERT_TRUE(messages.ok()) << messages.error().message;
  EXPECT_EQ(messages->at(0).role, "system");
  EXPECT_EQ(messages->at(0).content, "ab");
}

TEST(Chat, WhatIsRefused) {
  EXPECT_THAT(rendered({}), HasSubstr("without messages"));
  EXPECT_THAT(rendered({{"tool", "x"}}),
              HasSubstr("message 0: expected the role system, user or assistant, got 'tool'"));
  const auto refusal = [](std::string_view text) {
    const auto messages = chat_messages(Json::parse(text), "chat.json");
    return messages.ok() ? "read" : messages.error().message;
  };
  EXPECT_EQ(refusal(R"([{"role": "user", "content": "x", "reasoning_content": null}])"), "read");
  EXPECT_THAT(refusal(R"([{"role": "tool", "content": "x"}])"), HasSubstr("chat.json[0].role"));
  EXPECT_THAT(refusal(R"([{"role": "assistant", "content": "", "tool_calls": []}])"),
              HasSubstr("chat.json[0].tool_calls: only role"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": [{"type": "text"}]}])"),
              HasSubstr("chat.json[0].content[0]: expected an object with 'text'"));
  EXPECT_THAT(refusal(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])"),
              HasSubstr("chat.json[0].content[0].type: expected text (images"));
  EXPECT_THAT(refusal(R"([{"role": "user"}])"), HasSubstr("chat.json[0]"));
  EXPECT_THAT(refusal(R"({"messages": []})"), HasSubstr("chat.json"));
}

}  // namespace
}  // namespace nereid::lm
