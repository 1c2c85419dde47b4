#include "nereid/lm/chat/chat.h"

#include <algorithm>
#include <ctime>

#include "nereid/base/json_field.h"

namespace nereid::lm {
namespace {

constexpr size_t kMaxMessages = 1 << 16, kLongestMessage = size_t{64} << 20;

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
Said split_thinking(const ChatMessage& message) {
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

std::string qwen3_text(std::span<const ChatMessage> messages, const ChatOptions& options) {
  size_t last_question = messages.size() - 1;
  for (size_t i = messages.size(); i-- > 0;)
    if (is_question(messages[i])) {
      last_question = i;
      break;
    }
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    text += "<|im_start|>" + message.role + "\n";
    if (message.role != "assistant") {
      text += message.content;
    } else {
      const Said said = split_thinking(message);
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

std::string chat_ml_text(const ChatTemplate& how, std::span<const ChatMessage> messages,
                         const ChatOptions& options) {
  std::string text;
  const auto add = [&](std::string_view role, std::string_view content) {
    text += fmt::format("<|im_start|>{}\n{}<|im_end|>\n", role, content);
  };
  if (messages[0].role != "system" && !how.usual_system.empty()) add("system", how.usual_system);
  for (const ChatMessage& message : messages) add(message.role, message.content);
  return options.add_generation_prompt ? text + "<|im_start|>assistant\n" : text;
}

// As Python's str.strip: white space of Unicode, and the four separators of ASCII.
std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpaces[] = {
      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",   " ",
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view space : kSpaces) {
      if (text.starts_with(space)) text.remove_prefix(space.size()), more = true;
      if (text.ends_with(space)) text.remove_suffix(space.size()), more = true;
    }
  }
  return text;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%d %b %Y", &local));
}

std::string llama3_text(const ChatTemplate& how, std::span<const ChatMessage> messages,
                        const ChatOptions& options) {
  std::string text = "<|begin_of_text|>";
  const auto add = [&](std::string_view role, std::string_view before, std::string_view content) {
    text += fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n{}{}<|eot_id|>", role, before,
                        stripped(content));
  };
  if (!how.date.empty()) {
    const bool has_system = messages[0].role == "system";
    add("system",
        fmt::format("Cutting Knowledge Date: December 2023\nToday Date: {}\n\n",
                    how.date == "today" ? today() : how.date),
        has_system ? messages[0].content : "");
    if (has_system) messages = messages.subspan(1);
  }
  for (const ChatMessage& message : messages) add(message.role, "", message.content);
  return options.add_generation_prompt ? text + "<|start_header_id|>assistant<|end_header_id|>\n\n" : text;
}

}  // namespace

Result<std::string> render_chat(const ChatTemplate& how, std::span<const ChatMessage> messages,
                                const ChatOptions& options) {
  if (messages.empty()) return input_error("a conversation without messages");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      return input_error("message {}: expected the role system, user or assistant, got '{}'", i, role);
  }
  switch (how.family) {
    case ChatTemplate::Family::kQwen3:
      return qwen3_text(messages, options);
    case ChatTemplate::Family::kChatMl:
      return chat_ml_text(how, messages, options);
    case ChatTemplate::Family::kLlama3:
      break;
  }
  return llama3_text(how, messages, options);
}

namespace {

// A text, or its parts as OpenAI's clients send them: [{"type": "text", "text": "..."}, ...].
Result<std::string> content_of(const JsonField& content) {
  if (!content.json().is_array()) return content.text(kLongestMessage);
  std::string text;
  NEREID_TRY_STATUS(content.each(kMaxMessages, [&](const JsonField& part) -> Status {
    NEREID_TRY(const JsonField type, part.at("type"));
    NEREID_TRY(const std::string kind, type.text());
    if (kind != "text") return type.expected("text (images and sounds are not supported)");
    NEREID_TRY(const JsonField said, part.at("text"));
    NEREID_TRY(const std::string piece, said.text(kLongestMessage));
    text += piece;
    return ok_status();
  }));
  return text;
}

}  // namespace

Result<std::vector<ChatMessage>> chat_messages(const Json& document, std::string_view what) {
  const JsonField root(document, what);
  std::vector<ChatMessage> messages;
  NEREID_TRY_STATUS(root.each(kMaxMessages, [&](const JsonField& field) -> Status {
    NEREID_TRY_STATUS(
        field.each_member(kMaxMessages, [](const std::string& name, const JsonField& member) -> Status {
          if (name == "role" || name == "content" || name == "reasoning_content") return ok_status();
          if (member.json().is_null()) return ok_status();
          return input_error(
              "{}: only role, content and reasoning_content are known here; tools are not supported",
              member.path());
        }));
    ChatMessage message;
    NEREID_TRY(const JsonField role, field.at("role"));
    NEREID_TRY(message.role, role.text());
    if (message.role == "developer") message.role = "system";  // OpenAI's newer word
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      return role.expected("system, user or assistant (tools are not supported)");
    NEREID_TRY(const JsonField content, field.at("content"));
    NEREID_TRY(message.content, content_of(content));
    NEREID_TRY(const auto reasoning, field.find("reasoning_content"));
    if (reasoning && !reasoning->json().is_null()) {
      NEREID_TRY(message.reasoning, reasoning->text(kLongestMessage));
    }
    messages.push_back(std::move(message));
    return ok_status();
  }));
  return messages;
}

}  // namespace nereid::lm
