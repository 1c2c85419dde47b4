#include "nereid/serve/question.h"

#include <algorithm>
#include <array>
#include <map>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/program/included_files.h"
#include "nereid/serve/json_member.h"
#include "nereid/verify/batch/batch_line.h"

namespace nereid::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxReference = size_t{8} << 20;
// A pair's own settings, as docs/batch_protocol.md names them. Never a path: the server's files are not its
// clients'.
constexpr std::array<std::string_view, 16> kOptions = {
    "policy",        "device", "protocol",     "trials",        "seed",        "time_limit",
    "verdict_limit", "rtol",   "atol",         "allow_tf32",    "fast_inputs", "shrink",
    "forbid",        "trace",  "ignore_rules", "candidate_name"};

Error expected(const std::string& where, std::string_view key, std::string_view what) {
  return input_error("{}.{}: expected {}", where, key, what);
}

std::string content_of(const Json& message) {
  if (message.is_string()) return message.get<std::string>();
  const Json* content = message.is_object() ? member(message, "content") : nullptr;
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (content->is_array())
    for (const Json& part : *content) {
      if (part.is_string()) text += part.get<std::string>();
      if (const Json* piece = part.is_object() ? member(part, "text") : nullptr; piece && piece->is_string())
        text += piece->get<std::string>();
    }
  return text;
}

bool is_text_or_chat(const Json& json) { return json.is_string() || json.is_array() || json.is_object(); }

// An answer of another shape is the client's mistake, not a candidate with a low reward.
bool is_completion(const Json& json) {
  const auto is_message = [](const Json& one) {
    return one.is_string() || (one.is_object() && (one.contains("content") || one.contains("role")));
  };
  return json.is_array() ? !json.empty() && std::ranges::all_of(json, is_message) : is_message(json);
}

Status check_keys(const Json& item, const std::string& where) {
  constexpr std::array<std::string_view, 10> kKeys = {"completion", "reference", "prompt", "form",
                                                      "options",    "reward",    "group",  "speedup_limit",
                                                      "files",      "id"};
  for (const auto& [key, value] : item.items())
    if (std::ranges::find(kKeys, key) == kKeys.end())
      return input_error("{}: unknown key '{}': expected one of {}", where, key.substr(0, 100),
                         fmt::join(kKeys, ", "));
  return ok_status();
}

// Python files that came with the request, by path.
Result<std::map<std::string, std::string>> files_of(const Json& item, const std::string& where) {
  std::map<std::string, std::string> found;
  const Json* files = member(item, "files");
  if (files == nullptr) return found;
  if (!files->is_object() || files->size() > kMaxIncludedFiles)
    return expected(where, "files",
                    fmt::format("an object of at most {} texts, by their paths", kMaxIncludedFiles));
  for (const auto& [path, text] : files->items()) {
    if (!text.is_string()) return expected(where, "files", "an object of texts, by their paths");
    found.emplace(path, text.get<std::string>());
  }
  return found;
}

Result<std::string> options_of(const Json& item, const std::string& where, double time_limit) {
  const Json* options = member(item, "options");
  if (options == nullptr) return std::string();
  if (!options->is_object()) return expected(where, "options", "an object");
  std::string text;
  for (const auto& [key, value] : options->items()) {
    if (std::ranges::find(kOptions, key) == kOptions.end())
      return input_error("{}.options: unknown key '{}': expected one of {}", where, key.substr(0, 100),
                         fmt::join(kOptions, ", "));
    if (key == "time_limit" && value.is_number() && value.get<double>() > time_limit)
      return expected(where, "options.time_limit", fmt::format("at most the server's {:g} s", time_limit));
    text += fmt::format(",{}:{}", json_text(key),
                        value.is_string() ? json_text(value.get_ref<const std::string&>()) : value.dump());
  }
  return text;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string prompt_text(const Json& prompt) {
  if (!prompt.is_array()) return content_of(prompt);
  std::string text;
  for (const Json& message : prompt) text += (text.empty() ? "" : "\n") + content_of(message);
  return text;
}

std::string completion_text(const Json& completion) {
  if (!completion.is_array()) return content_of(completion);
  const Json* last = completion.empty() ? nullptr : &completion.back();
  for (const Json& message : completion) {
    const Json* role = message.is_object() ? member(message, "role") : nullptr;
    if (role == nullptr || *role == "assistant") last = &message;
  }
  return last == nullptr ? "" : content_of(*last);
}

std::optional<std::string> reference_in(std::string_view prompt) {
  constexpr std::string_view kFence = "```";
  std::optional<std::string> found;
  for (size_t at = prompt.find(kFence); at != prompt.npos;) {
    const size_t begin = at + kFence.size(), end = prompt.find(kFence, begin);
    const std::string_view block = prompt.substr(begin, end == prompt.npos ? end : end - begin);
    const size_t line = block.find('\n');
    const std::string_view source = line == block.npos ? std::string_view() : block.substr(line + 1);
    if (source.find("class Model") != source.npos && source.find("get_inputs") != source.npos)
      found = std::string(source);
    at = end == prompt.npos ? end : prompt.find(kFence, end + kFence.size());
  }
  return found;
}

Result<std::string> reference_source(const std::string& reference, const fs::path& tasks) {
  if (reference.find('\n') != std::string::npos) return reference;
  const std::string shown = reference.substr(0, 200);
  if (tasks.empty())
    return input_error("reference '{}': expected source text; this server has no folder of tasks (--tasks)",
                       shown);
  if (reference.empty() || reference.size() > 1000 || reference.find('\0') != std::string::npos)
    return input_error("reference '{}': expected a task's name", shown);
  std::error_code failure;
  const fs::path folder = fs::weakly_canonical(tasks, failure);
  for (const std::string& name : {reference, reference + ".py"}) {
    const fs::path path = fs::weakly_canonical(folder / name, failure);
    if (failure) continue;
    const auto [rest, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    if (rest != folder.end())
      return input_error("reference '{}': expected a name below the server's tasks", shown);
    if (!fs::is_regular_file(path, failure)) continue;
    NEREID_TRY(std::string source, read_file(path, kMaxReference));
    return task_with_files(std::move(source), path, {}, folder);
  }
  return input_error("reference '{}': there is no such task on this server", shown);
}

Result<Question> read_question(const Json& item, const std::string& where, const QuestionDefaults& defaults) {
  if (!item.is_object()) return input_error("{}: expected an object", where);
  NEREID_TRY_STATUS(check_keys(item, where));
  Question question;
  const Json* completion = member(item, "completion");
  if (completion == nullptr || !is_completion(*completion))
    return expected(where, "completion", "a text, or messages of a chat with `role` and `content`");
  const std::string answer = completion_text(*completion);

  const Json *reference = member(item, "reference"), *prompt = member(item, "prompt");
  if (reference != nullptr) {
    if (!reference->is_string()) return expected(where, "reference", "source text, or a task's name");
    const auto& given = reference->get_ref<const std::string&>();
    NEREID_TRY(const auto files, files_of(item, where));
    const auto own = files.find(given);
    if (own != files.end()) {
      NEREID_TRY(question.reference, text_with_files(own->second, given, files));
    } else {
      NEREID_TRY(question.reference, reference_source(given, defaults.tasks));
      NEREID_TRY(question.reference, text_with_files(std::move(question.reference), "", files));
    }
    if (given.find('\n') == std::string::npos) question.task = given;
  } else {
    auto shown =
        prompt != nullptr && is_text_or_chat(*prompt) ? reference_in(prompt_text(*prompt)) : std::nullopt;
    if (!shown)
      return input_error(
          "{}: expected `reference`, or a `prompt` with a code block that has `class Model` and `get_inputs`",
          where);
    question.reference = *std::move(shown);
  }

  NEREID_TRY(question.reward, read_reward(item, where, defaults.reward));
  if (const Json* group = member(item, "group")) {
    if (!group->is_string()) return expected(where, "group", "text");
    question.group = group->get<std::string>();
  }
  NEREID_TRY(const std::string options, options_of(item, where, defaults.time_limit));
  std::string form;
  if (const Json* given = member(item, "form")) {
    if (*given != "answer" && *given != "source") return expected(where, "form", "answer or source");
    form = given->get<std::string>();
  } else if (answer.find("```") != std::string::npos) {
    form = "answer";
  }
  const std::string content = fmt::format(
      "\"reference_source\":{},\"candidate_source\":{}{}{}", json_text(question.reference), json_text(answer),
      form.empty() ? "" : fmt::format(",\"form\":{}", json_text(form)), options);
  question.id = sha256_hex(fmt::format("{}\n{}", defaults.identity, content));
  question.line = fmt::format("{{\"id\":\"{}\",{}}}", question.id, content);
  question.reference_hash = sha256_hex(question.reference), question.completion_hash = sha256_hex(answer);
  // The judge would say the same, later.
  if (const auto read = verify::read_batch_line(question.line, question.line.size() > verify::kMaxLineBytes,
                                                where + ".options", ".");
      !read.pair.ok())
    return read.pair.error();
  return question;
}

}  // namespace nereid::serve
