#include "nereid/skills/skill.h"

#include <algorithm>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/printable.h"
#include "nereid/base/text.h"
#include "nereid/skills/front_matter.h"

namespace nereid::skills {
namespace {

constexpr std::string_view kBorder = "+++", kFence = "```";

bool lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_operator_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxWord &&
         std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '_' || c == '.'; });
}

// Where the first line of `text` is line `first`: an error for a line that is not to be shown as it is.
Status check_printable(std::string_view text, const std::string& file, size_t first = 1) {
  for (size_t at = 0; at <= text.size(); ++first) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (const std::string shown = printable(line); shown != line)
      return input_error("{}:{}: expected UTF-8 without control characters, got '{}'", file, first,
                         shown.substr(0, 80));
    at = end + 1;
  }
  return ok_status();
}

// What a field has to be, where it is not; empty where it is.
std::string expected_of(const Skill& skill, std::string_view field) {
  const auto most = [](size_t size, size_t limit) {
    return size > limit ? fmt::format("at most {} bytes (there are {})", limit, size) : std::string();
  };
  const auto plain = [](const std::string& text) { return printable(text) == text; };
  if (field == "name" && !is_skill_name(skill.name))
    return fmt::format("1 to {} lower-case letters, digits and hyphens", kMaxName);
  if (field == "operators") {
    if (skill.operators.size() > kMaxOperators) return fmt::format("at most {} operators", kMaxOperators);
    if (!std::ranges::all_of(skill.operators, is_operator_name))
      return "names of operators as in \"layer_norm\"";
  }
  if (field == "tags") {
    if (skill.tags.size() > kMaxTags) return fmt::format("at most {} tags", kMaxTags);
    for (const auto& tag : skill.tags)
      if (tag.empty() || tag.size() > kMaxWord || !plain(tag))
        return fmt::format("tags of 1 to {} bytes without control characters", kMaxWord);
  }
  if (field == "when") {
    if (skill.when.empty() || !plain(skill.when))
      return "one line, without control characters, that says when to use the skill";
    return most(skill.when.size(), kMaxWhenText);
  }
  if (field == "text" && skill.text.empty()) return "a text before the code block";
  if (field == "text" && skill.text.find(kFence) != skill.text.npos)
    return "a text without ```, which begins the code";
  if (field == "text") return most(skill.text.size(), kMaxText);
  if (field == "pattern" && trimmed(skill.pattern).empty()) return "code between ```python and ```";
  if (field == "pattern" && skill.pattern.find(kFence) != skill.pattern.npos)
    return "one code block without ``` in it";
  if (field == "pattern") return most(skill.pattern.size(), kMaxPattern);
  return {};
}

constexpr std::string_view kFields[] = {"name", "operators", "tags", "when", "text", "pattern"};

std::string toml_list(const std::vector<std::string>& list) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ", ") + toml_text(item);
  return "[" + out + "]";
}

// The text before the code block, and the code.
Status read_body(std::string_view body, size_t first_line, const std::string& file, Skill& skill) {
  const auto line_of = [&](size_t at) {
    return first_line +
           static_cast<size_t>(std::count(body.begin(), body.begin() + static_cast<long>(at), '\n'));
  };
  const size_t fence = body.find("```python\n");
  const size_t other = body.find(kFence);
  if (fence == body.npos || other < fence)
    return input_error("{}:{}: expected a code block that begins with ```python, got {}", file,
                       line_of(other == body.npos ? body.size() : other),
                       other == body.npos ? "none" : "another block");
  const size_t code = fence + 10, end = body.find("\n```", code > 0 ? code - 1 : code);
  if (end == body.npos)
    return input_error("{}:{}: expected ``` at the end of the code block, got the end of the file", file,
                       line_of(body.size()));
  const std::string_view rest = body.substr(end + 4);
  if (!trimmed(rest).empty())
    return input_error("{}:{}: expected nothing after the code block, got '{}'", file, line_of(end + 4) + 1,
                       trimmed(rest).substr(0, 40));
  skill.text = trimmed(body.substr(0, fence));
  skill.pattern = end < code ? "" : std::string(body.substr(code, end - code)) + "\n";
  for (const auto field : {"text", "pattern"})
    if (const std::string expected = expected_of(skill, field); !expected.empty())
      return input_error("{}:{}: {}: expected {}", file,
                         field == std::string_view("text") ? first_line : line_of(fence), field, expected);
  return ok_status();
}

Status take_value(const std::string& key, const FrontMatterValue& value, const std::string& file,
                  Skill& skill) {
  const bool list = key == "operators" || key == "tags";
  if (!list && key != "name" && key != "when")
    return input_error("{}:{}: the front matter has no key '{}'; it has name, operators, tags, when", file,
                       value.line, key);
  if (list != value.list)
    return input_error("{}:{}: {}: expected {}, got {}", file, value.line, key,
                       list ? "a list of texts as in [\"a\", \"b\"]" : "a text in quotes",
                       value.list ? "a list" : "a text");
  if (list)
    (key == "tags" ? skill.tags : skill.operators) = value.texts;
  else
    (key == "name" ? skill.name : skill.when) = value.texts.front();
  const std::string expected = expected_of(skill, key);
  if (expected.empty()) return ok_status();
  const std::string found = value.texts.empty() ? "nothing" : value.texts.front();
  return input_error("{}:{}: {}: expected {}, got '{}'", file, value.line, key, expected,
                     printable(found).substr(0, 60));
}

}  // namespace

bool is_skill_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && lower_or_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '-'; });
}

std::string Skill::hash() const { return sha256_hex(to_markdown(*this)); }

Result<Skill> parse_skill(std::string_view markdown, const std::string& file) {
  if (markdown.size() > kMaxFile)
    return input_error("{}: expected a skill of at most {} bytes, got {}", file, kMaxFile, markdown.size());
  std::string text;  // lines end as the reader expects
  for (size_t i = 0; i < markdown.size(); ++i)
    if (markdown[i] != '\r' || i + 1 == markdown.size() || markdown[i + 1] != '\n') text += markdown[i];
  NEREID_TRY_STATUS(check_printable(text, file));
  if (!text.starts_with("+++\n"))
    return input_error("{}:1: expected +++, which begins the front matter, got '{}'", file,
                       text.substr(0, std::min<size_t>(text.find('\n'), 40)));
  const size_t close = text.find("\n+++\n", 3);
  if (close == text.npos)
    return input_error(
        "{}:{}: expected +++ on a line of its own after the front matter, got the end of the "
        "file",
        file, 1 + std::count(text.begin(), text.end(), '\n'));
  NEREID_TRY(const auto values, parse_front_matter(std::string_view(text).substr(4, close - 3), file, 2));
  Skill skill;
  for (const auto& [key, value] : values) NEREID_TRY_STATUS(take_value(key, value, file, skill));
  for (const char* field : {"name", "when"})
    if (!values.contains(field))
      return input_error("{}:1: {}: expected {}, but it is missing", file, field, expected_of(skill, field));
  const size_t first_line =
      2 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<long>(close) + 1, '\n'));
  NEREID_TRY_STATUS(read_body(std::string_view(text).substr(close + 5), first_line, file, skill));
  return skill;
}

std::string to_markdown(const Skill& skill) {
  return fmt::format(
      "{0}\nname = {1}\noperators = {2}\ntags = {3}\nwhen = {4}\n{0}\n{5}\n\n```python\n{6}```\n", kBorder,
      toml_text(skill.name), toml_list(skill.operators), toml_list(skill.tags), toml_text(skill.when),
      skill.text, skill.pattern);
}

Json to_json(const Skill& skill) {
  Json json = {{"name", skill.name}, {"operators", skill.operators}, {"tags", skill.tags},
               {"when", skill.when}, {"text", skill.text},           {"pattern", skill.pattern},
               {"origin", Json()}};
  if (skill.origin)
    json["origin"] = {{"task", skill.origin->task},         {"slower", skill.origin->slower},
                      {"faster", skill.origin->faster},     {"speedup", skill.origin->speedup},
                      {"modelled", skill.origin->modelled}, {"writer", skill.origin->writer},
                      {"forward", skill.origin->forward}};
  return json;
}

Result<Skill> skill_from_json(const Json& json) {
  const JsonField root(json, "skill");
  Skill skill;
  const auto texts = [&](const char* key, std::vector<std::string>& into) -> Status {
    NEREID_TRY(const auto field, root.at(key));
    return field.each(100, [&](const JsonField& item) -> Status {
      NEREID_TRY(into.emplace_back(), item.text());
      return ok_status();
    });
  };
  NEREID_TRY(skill.name, root.text_at("name"));
  NEREID_TRY_STATUS(texts("operators", skill.operators));
  NEREID_TRY_STATUS(texts("tags", skill.tags));
  NEREID_TRY(skill.when, root.text_at("when"));
  NEREID_TRY(skill.text, root.text_at("text"));
  NEREID_TRY(skill.pattern, root.text_at("pattern"));
  for (const auto field : kFields)
    if (const std::string expected = expected_of(skill, field); !expected.empty())
      return input_error("skill.{}: expected {}", field, expected);
  for (const auto& text : {skill.when, skill.text, skill.pattern})
    NEREID_TRY_STATUS(check_printable(text, "skill"));
  NEREID_TRY(const auto origin, root.find("origin"));
  if (!origin || origin->json().is_null()) return skill;
  Origin& from = skill.origin.emplace();
  NEREID_TRY(from.task, origin->text_at("task"));
  NEREID_TRY(from.slower, origin->text_at("slower"));
  NEREID_TRY(from.faster, origin->text_at("faster"));
  NEREID_TRY(from.writer, origin->text_at("writer"));
  NEREID_TRY(from.forward, origin->text_at("forward"));
  NEREID_TRY(from.modelled, origin->boolean_at("modelled", false));
  NEREID_TRY(const auto speedup, origin->at("speedup"));
  NEREID_TRY(from.speedup, speedup.number());
  return skill;
}

}  // namespace nereid::skills
