// How models are given skills, asked which they want, and asked to write one: templates in a folder.
#pragma once

#include <filesystem>
#include <string>

#include "nereid/base/result.h"

namespace nereid::skills {

struct Prompts {
  std::string guide;   // skills.md: {{skills}}
  std::string choose;  // choose-skills.md: {{name}}, {{source}}, {{skills}}, {{most}}; empty: never asked
  std::string learn;   // learn-skill.md: {{source}}, {{slower}}, {{faster}}, {{speedup}}, {{facts}}
  std::string hash;    // of all of them

  // Of `folder`, each else of `usual`; choose-skills.md of `folder` alone, for a model that was trained with
  // prompts of its own answers no others. An Error (blamed on the input) names a file and a placeholder.
  static Result<Prompts> load(const std::filesystem::path& folder, const std::filesystem::path& usual);
};

}  // namespace nereid::skills
