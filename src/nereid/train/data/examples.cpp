#include "nereid/train/data/examples.h"

#include <algorithm>

#include "nereid/base/json_field.h"
#include "nereid/verify/verdict_kind.h"

namespace nereid::train {
namespace {

using Found = std::variant<Example, LeftOut>;

constexpr size_t kMaxText = size_t{16} << 20;

// Text that holds the marks of a conversation, of this template or another, would end a message early.
bool holds_marks(std::string_view text) {
  constexpr std::string_view kMarks[] = {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|eot_id|>"};
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return text.find(mark) != text.npos; });
}

Result<Found> conversation(const std::vector<lm::ChatMessage>& messages, const std::string& answer,
                           const ExampleSettings& settings) {
  for (const auto& message : messages)
    if (holds_marks(message.content) || holds_marks(message.reasoning.value_or("")))
      return Found(LeftOut{"holds marks of a conversation"});
  if (holds_marks(answer)) return Found(LeftOut{"holds marks of a conversation"});
  NEREID_TRY(auto prompt, lm::render_chat(settings.chat, messages));
  return Found(Example{std::move(prompt), answer + std::string(settings.chat.end_of_message()), true});
}

std::string thought_and_text(const std::string& thought, const std::string& text) {
  return fmt::format("<think>\n{}\n</think>\n\n{}", thought, text);
}

std::string without_newlines_at_the_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<Found> pair_example(const JsonField& root, const ExampleSettings& settings) {
  std::map<std::string, std::string> texts;
  for (const char* name : {"task", "plan", "code"}) {
    NEREID_TRY(const auto field, root.at(name));
    NEREID_TRY(texts[name], field.text(kMaxText));
  }
  NEREID_TRY(const auto verdict, root.find("verdict"));
  if (verdict) {
    NEREID_TRY(const auto kind, verdict->text_at("verdict"));
    if (verify::verdict_kind_from_string(kind) != verify::VerdictKind::kVerified)
      return Found(LeftOut{"is not Verified"});
  }
  if (texts["code"].find("```") != std::string::npos) return Found(LeftOut{"its code holds a fence"});
  NEREID_TRY(const auto asked, settings.ask(texts["task"]));
  return conversation(
      asked,
      thought_and_text(settings.without_plans ? "" : without_newlines_at_the_end(texts["plan"]),
                       fmt::format("```python\n{}\n```", without_newlines_at_the_end(texts["code"]))),
      settings);
}

Result<Found> chat_example(const JsonField& field, const ExampleSettings& settings) {
  NEREID_TRY(auto messages, lm::chat_messages(field.json(), field.path()));
  if (messages.size() < 2 || messages.back().role != "assistant")
    return field.expected("messages of which the last, and not the first, is the assistant's");
  const auto last = std::move(messages.back());
  messages.pop_back();
  return conversation(messages,
                      last.reasoning
                          ? thought_and_text(settings.without_plans ? "" : *last.reasoning, last.content)
                          : last.content,
                      settings);
}

}  // namespace

Result<Found> example_of(const Json& line, const std::string& where, const ExampleSettings& settings) {
  const JsonField root(line, where);
  if (!line.is_object()) return root.expected("an object");
  if (!settings.split.empty()) {
    NEREID_TRY(const auto side, root.at("split"));
    NEREID_TRY(const auto name, side.text());
    if (name != settings.split) return Found(LeftOut{"is of another split"});
  }
  if (line.contains("task")) return pair_example(root, settings);
  if (line.contains("messages")) {
    NEREID_TRY(const auto messages, root.at("messages"));
    return chat_example(messages, settings);
  }
  if (!line.contains("prompt")) return root.expected("a `task`, `messages` or a `prompt`");
  Example example;
  NEREID_TRY(const auto prompt, root.at("prompt"));
  NEREID_TRY(example.prompt, prompt.text(kMaxText));
  NEREID_TRY(const auto answer, root.at("answer"));
  NEREID_TRY(example.answer, answer.text(kMaxText));
  return Found(std::move(example));
}

}  // namespace nereid::train
