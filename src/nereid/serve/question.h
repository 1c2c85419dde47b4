// A question to the judge: a model's answer (or source) to a task, from whatever JSON a client sends, as a
// line of the batch protocol.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/serve/reward.h"

namespace nereid::serve {

// What a server's questions have in common.
struct QuestionDefaults {
  std::filesystem::path tasks{};  // where references that are names come from; empty: nowhere
  double time_limit = 30;         // seconds; a question may set less, not more
  RewardSettings reward{};
  std::string identity{};  // of judge and machine: part of each question's id
};

struct Question {
  std::string id;  // SHA-256 of all that the verdict depends on
  std::string
      line;  // of docs/batch_protocol.md, under this id; strings in it may hold bytes that are no UTF-8
  std::string reference;                        // the task's source
  std::string task;                             // its name, where it has one
  std::string reference_hash, completion_hash;  // SHA-256
  RewardSettings reward;                        // no part of the id: the same pair costs once
  std::string group;                            // whose answers are compared with each other; may be empty
};

// `item` is an object {"completion", "reference" | "prompt", "files", "form", "options", "reward",
// "speedup_limit", "group"} as docs/serve.md has it; `where` names it in errors, which are blamed on the
// input.
Result<Question> read_question(const Json& item, const std::string& where, const QuestionDefaults& defaults);

// The source of a task that is given as source, or as a name below `tasks` with the files there that it
// imports.
Result<std::string> reference_source(const std::string& reference, const std::filesystem::path& tasks);

// The last code block of a text with `class Model` and `get_inputs`.
std::optional<std::string> reference_in(std::string_view prompt);

// All that a prompt says: a text, or a chat's messages. The answer in a completion: a text, or the last
// assistant's message.
std::string prompt_text(const Json& prompt);
std::string completion_text(const Json& completion);

// A JSON string; bytes that are no UTF-8 stay as they are.
std::string json_text(std::string_view text);

}  // namespace nereid::serve
