// A conversation as the prompt that Qwen 3 was trained on: what the Jinja template in its
// tokenizer_config.json renders, for messages without tools.
//
//   <|im_start|>system\n...<|im_end|>\n<|im_start|>user\n...<|im_end|>\n<|im_start|>assistant\n
//
// The thinking of earlier turns is left out: an assistant's message before the last question loses what
// stands up to </think>; one behind it keeps its thinking as <think>\n...\n</think>\n\n, the last message
// even where it has none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid::model {

struct ChatMessage {
  std::string role;  // system, user or assistant
  std::string content;
  std::optional<std::string> reasoning =
      std::nullopt;  // an assistant's thinking, where it is not in `content` before </think>
};

struct ChatOptions {
  bool add_generation_prompt = true;  // ends where the assistant's next message begins
  bool thinking = true;               // false: that message begins with an empty thought
};

// An error: no messages, another role.
Result<std::string> render_qwen3_chat(std::span<const ChatMessage> messages, const ChatOptions& options = {});

// [{"role": "user", "content": "..."}, ...], with "reasoning_content" perhaps. Anything else, tools among it,
// is an error that names its place; `what` names the document.
Result<std::vector<ChatMessage>> chat_messages(const Json& document, std::string_view what);

}  // namespace nereid::model
