// A conversation as the prompt that a model was trained on: what the Jinja templates that come with Qwen 3,
// Qwen 2.5 and Llama 3 render, for messages without tools. chat_template.h finds out which it is.
//
//   <|im_start|>system\n...<|im_end|>\n<|im_start|>user\n...<|im_end|>\n<|im_start|>assistant\n
//   <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n...<|eot_id|>...
//
// Qwen 3: the thinking of earlier turns is left out. An assistant's message before the last question loses
// what stands up to </think>; one after it keeps its thinking as <think>\n...\n</think>\n\n, the last
// message even where it has none.
// ChatML, as Qwen 2.5 has it: messages as they are; where no system message is first, its own stands there.
// Llama 3: messages without the white space around them. From 3.1 on there is always a system message, which
// begins with dates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid::lm {

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

struct ChatTemplate {
  enum class Family { kQwen3, kChatMl, kLlama3 } family = Family::kQwen3;
  std::string usual_system = {};  // ChatML: of a conversation that begins with none; empty: nothing
  // Llama 3: the date in the system message; empty: none, as 3.0. "today": that of the day, as 3.2 does it.
  std::string date = {};

  std::string_view end_of_message() const { return family == Family::kLlama3 ? "<|eot_id|>" : "<|im_end|>"; }
};

// An error: no messages, another role. Options of thinking are Qwen 3's alone.
Result<std::string> render_chat(const ChatTemplate& how, std::span<const ChatMessage> messages,
                                const ChatOptions& options = {});

// [{"role": "user", "content": "..."}, ...], with "reasoning_content" perhaps. Anything else, tools among it,
// is an error that names its place; `what` names the document.
Result<std::vector<ChatMessage>> chat_messages(const Json& document, std::string_view what);

}  // namespace nereid::lm
