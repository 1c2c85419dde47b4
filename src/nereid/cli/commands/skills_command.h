// What the subcommands of `nereid skills` share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/cli/command_group.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/search_setup.h"
#include "nereid/skills/admission.h"
#include "nereid/skills/library.h"

namespace nereid::cli {

struct SkillsOptions {
  std::string address;
  std::vector<std::string> files;
  std::string name, query, task;
  int64_t version = 0;
  bool all_versions = false, purge = false;
  int64_t limit = 20;
  ModuleFlags module;
  // Of `admit` and `learn`.
  SearchFlags search{};
  std::string proposer, tasks, clock = "measured", slower, faster;
  int samples = 8, jobs = 1;
  int64_t capacity = skills::kCapacity, pairs = 5;
};

Result<std::unique_ptr<skills::Library>> open_library(const std::string& address);
// With its state, worth and origin.
Json entry_json(const skills::Entry& entry, const skills::Worth& worth);
// "1.42 (1.21 to 1.66) over 6 tasks", or "not measured".
std::string worth_text(const skills::Worth& worth);
// An error names where it was looked for.
Result<skills::Entry> find_skill(skills::Library& library, const std::string& name, int64_t version);

}  // namespace nereid::cli
