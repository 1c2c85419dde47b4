// Every rule that evidence can name: its id, the verdict it gives, why it is there and how to fix a kernel
// that gets it. docs/verdicts.md says the same at length; a test compares the two.
#pragma once

#include <span>
#include <string_view>

#include "nereid/verify/verdict.h"

namespace nereid::verify {

struct RuleEntry {
  std::string_view id;
  VerdictKind kind;
  std::string_view why;  // sentences
  std::string_view fix;  // sentences, to the kernel's author
};

std::span<const RuleEntry> catalogue();
const RuleEntry* find_rule(std::string_view id);  // null where there is none

}  // namespace nereid::verify
