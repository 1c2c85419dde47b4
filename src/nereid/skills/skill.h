// A skill: a short text with a code pattern, and when to use it. Written as Markdown with TOML front matter:
//
//   +++
//   name = "one-pass-softmax"
//   operators = ["softmax"]
//   tags = ["rows"]
//   when = "Rows of a softmax fit into one block."
//   +++
//   Read each row once ...
//
//   ```python
//   @triton.jit
//   ...
//   ```
//
// The text is data of unknown origin. It goes into prompts and to people who look at it, and nowhere else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::skills {

// Two verified answers to one task, from which a skill was written.
struct Origin {
  std::string task{}, slower{}, faster{};  // SHA-256 of the sources
  double speedup = 1;                      // time of `slower` over time of `faster`
  bool modelled = false;                   // by the cost model, not by a clock
  std::string writer{};                    // "difference", or a model's proposer and name
  std::string forward{};                   // `forward_signature` of the task (retrieval.h)
  bool operator==(const Origin&) const = default;
};

// Limits in bytes, but for lists.
inline constexpr size_t kMaxName = 64, kMaxWord = 64, kMaxOperators = 32, kMaxTags = 16, kMaxWhenText = 400,
                        kMaxText = 4000, kMaxPattern = 8000, kMaxFile = 20000;

struct Skill {
  std::string name{};                    // lower-case letters, digits and hyphens
  std::vector<std::string> operators{};  // of the tasks it is for: "softmax", "layer_norm"
  std::vector<std::string> tags{};
  std::string when{};     // one line
  std::string text{};     // what to do, and why
  std::string pattern{};  // Python
  std::optional<Origin> origin{};
  bool operator==(const Skill&) const = default;

  // SHA-256 of all but the origin: equal for skills that read the same.
  std::string hash() const;
};

// An Error (blamed on the input) names the file, the line, what was expected and what was found: also of a
// text that is too long, is no UTF-8, or holds control characters or what changes the direction of text.
Result<Skill> parse_skill(std::string_view markdown, const std::string& file);
// `parse_skill` of it is the same skill, without its origin.
std::string to_markdown(const Skill& skill);

nlohmann::json to_json(const Skill& skill);
Result<Skill> skill_from_json(const nlohmann::json& json);  // with the same limits

bool is_skill_name(std::string_view name);

}  // namespace nereid::skills
