// Prompts as files: a template's {{name}} are replaced by what is known of the task.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "nereid/base/result.h"

namespace nereid::policy {

// What stands in place of each {{key}}. A key of the template that has no value is an error (blamed on the
// input) with the line; values are not looked into again.
Result<std::string> fill(const std::string& text, const std::map<std::string, std::string>& values,
                         const std::string& what);

struct Prompts {
  std::string system, task, repair;
  std::string hash;  // of all three: a part of who answers

  // system.md, task.md and repair.md of a folder.
  static Result<Prompts> load(const std::filesystem::path& folder);
};

}  // namespace nereid::policy
