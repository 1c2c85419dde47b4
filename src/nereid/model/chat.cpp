#include "nereid/model/chat.h"

#include <algorithm>

#include "nereid/base/json_field.h"

namespace nereid::model {
namespace {

constexpr size_t kMostMessages = 1 << 16, kLongestMessage = size_t{64} << 20;

std::string_view without_leading_newlines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
std::string_view without_trailing_newlines(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

// A question is what a user says, but for what hands a tool's answer back.
bool is_question(const ChatMessage& message) {
  return message.role == "user" &&
         !(message.content.starts_with("<tool_response>") && message.content.ends_with("</tool_response>"));
}

struct Said {
  std::string_view reasoning, content;
};

// Thinking and answer. Of several thoughts in the content the first is the reasoning, and the answer follows
// the last.
Said said_by(const ChatMessage& message) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const std::string_view content = message.content;
  if (message.reasoning) return {*message.reasoning, content};
  const size_t first = content.find(kClose), last = content.rfind(kClose);
  if (first == std::string_view::npos) return {"", content};
  std::string_view reasoning = without_trailing_newlines(content.substr(0, first));
  if (const size_t open = reasoning.rfind(kOpen); open != std::string_view::npos)
    reasoning.remove_prefix(open + kOpen.size());
  return {without_leading_newlines(reasoning),
          without_leading_newlines(content.substr(last + kClose.size()))};
}

}  // namespace

Result<std::string> render_qwen3_chat(std::span<const ChatMessage> messages, const ChatOptions& options) {
  if (messages.empty()) return input_error("a conversation without messages");
  size_t last_question = messages.size() - 1;
  for (size_t i = messages.size(); i-- > 0;)
    if (is_question(messages[i])) {
      last_question = i;
      break;
    }
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      return input_error("message {}: expected the role system, user or assistant, got '{}'", i,
                         message.role);
    text += "<|im_start|>" + message.role + "\n";
    if (message.role != "assistant") {
      text += message.content;
    } else {
      const Said said = said_by(message);
      const bool last = i + 1 == messages.size();
      if (i > last_question && (last || !said.reasoning.empty())) {
        text += fmt::format("<think>\n{}\n</think>\n\n{}",
                            without_leading_newlines(without_trailing_newlines(said.reasoning)),
                            without_leading_newlines(said.content));
      } else {
        text += said.content;
      }
    }
    text += "<|im_end|>\n";
  }
  if (options.add_generation_prompt) {
    text += "<|im_start|>assistant\n";
    if (!options.thinking) text += "<think>\n\n</think>\n\n";
  }
  return text;
}

Result<std::vector<ChatMessage>> chat_messages(const Json& document, std::string_view what) {
  const JsonField root(document, what);
  std::vector<ChatMessage> messages;
  NEREID_TRY_STATUS(root.each(kMostMessages, [&](const JsonField& field) -> Status {
    NEREID_TRY_STATUS(
        field.each_member(kMostMessages, [](const std::string& name, const JsonField& member) -> Status {
          if (name == "role" || name == "content" || name == "reasoning_content") return ok_status();
          return input_error(
              "{}: only role, content and reasoning_content are known here; tools are not supported",
              member.path());
        }));
    ChatMessage message;
    NEREID_TRY(const JsonField role, field.at("role"));
    NEREID_TRY(message.role, role.text());
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      return role.expected("system, user or assistant (tools are not supported)");
    NEREID_TRY(const JsonField content, field.at("content"));
    NEREID_TRY(message.content, content.text(kLongestMessage));
    NEREID_TRY(const auto reasoning, field.find("reasoning_content"));
    if (reasoning && !reasoning->json().is_null()) {
      NEREID_TRY(message.reasoning, reasoning->text(kLongestMessage));
    }
    messages.push_back(std::move(message));
    return ok_status();
  }));
  return messages;
}

}  // namespace nereid::model
