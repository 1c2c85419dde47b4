#include "nereid/lm/chat/chat_template.h"

#include <optional>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"

namespace nereid::lm {
namespace {

constexpr size_t kMaxTemplate = size_t{1} << 20;
using Kind = ChatTemplate::Family;

// What stands between the first `before` that is followed by no quote, and the next `after`.
std::optional<std::string> literal_between(std::string_view text, std::string_view before,
                                           std::string_view after) {
  for (size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
    const std::string_view rest = text.substr(at + before.size());
    const size_t end = rest.find(after);
    if (end != rest.npos && rest.substr(0, end).find_first_of("'\"{") == rest.npos)
      return std::string(rest.substr(0, end));
  }
  return std::nullopt;
}

// A list has templates by name; those for conversations without tools are called default.
Result<std::optional<std::string>> template_in(const JsonField& config) {
  NEREID_TRY(const auto field, config.find("chat_template"));
  std::optional<std::string> text;
  if (!field || field->json().is_null()) return text;
  if (field->json().is_string()) {
    NEREID_TRY(text, field->text(kMaxTemplate));
    return text;
  }
  NEREID_TRY_STATUS(field->each(64, [&](const JsonField& named) -> Status {
    NEREID_TRY(const std::string name, named.text_at("name"));
    if (name != "default") return ok_status();
    NEREID_TRY(const auto own, named.at("template"));
    NEREID_TRY(text, own.text(kMaxTemplate));
    return ok_status();
  }));
  if (!text) return field->expected("a template, or a list with one that is called default");
  return text;
}

}  // namespace

Result<ChatTemplate> recognize_chat_template(std::string_view jinja, std::string_view what) {
  // A line's end in a literal is written as \n or stands there itself.
  std::string text(jinja);
  for (size_t at = 0; (at = text.find("\\n", at)) != text.npos;) text.replace(at, 2, "\n");
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };

  if (has("<|start_header_id|>") && has("<|eot_id|>") && !has("<|im_start|>")) {
    ChatTemplate found{.family = Kind::kLlama3};
    if (!has("Cutting Knowledge Date: December 2023\n")) return found;
    const auto date = literal_between(text, "date_string = \"", "\"");
    if (!date && !has("strftime_now"))
      return input_error("{}: expected date_string = \"...\" in a template of Llama 3.1 or later", what);
    found.date = has("strftime_now") ? "today" : *date;
    return found;
  }
  if (has("<|im_start|>") && has("<|im_end|>")) {
    const bool thinks = has("<think>");
    if (thinks && has("reasoning_content") && has("enable_thinking"))
      return ChatTemplate{.family = Kind::kQwen3};
    if (!thinks)
      return ChatTemplate{
          .family = Kind::kChatMl,
          .usual_system = literal_between(text, "<|im_start|>system\n", "<|im_end|>").value_or("")};
  }
  return input_error("{}: expected the chat template of Qwen 3, Qwen 2.5 or Llama 3, got another ('{}...')",
                     what, jinja.substr(0, 60));
}

Result<ChatTemplate> read_chat_template(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  std::error_code absent;
  const auto alone = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (std::filesystem::exists(alone, absent)) {
    NEREID_TRY(const std::string text, read_file(alone, kMaxTemplate));
    return recognize_chat_template(text, alone.string());
  }
  if (std::filesystem::exists(config, absent)) {
    NEREID_TRY(const std::string json, read_file(config, size_t{64} << 20));
    const std::string name = config.string();
    NEREID_TRY(const Json document, parse_json(json, name));
    NEREID_TRY(const auto text, template_in(JsonField(document, name)));
    if (text) return recognize_chat_template(*text, name + ".chat_template");
  }
  const bool llama = tokenizer.find("<|start_header_id|>") && !tokenizer.find("<|im_start|>");
  return ChatTemplate{.family = llama ? Kind::kLlama3 : Kind::kQwen3};
}

}  // namespace nereid::lm
