// A verdict for a person.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "nereid/verify/verdict.h"

namespace nereid::verify {

struct VerdictFormat {
  bool color = false;
  bool explain = false;  // every piece of evidence in prose, with source excerpts and what the rule is for
  // The text of a file named in the evidence, empty where it is unknown.
  std::function<std::string_view(const std::string& file)> source_of{};
};

// One headline, what was checked, and for a failure the one thing to look at with file and line. Ends with a
// newline.
std::string format_verdict(const Verdict& verdict, const VerdictFormat& options = {});

}  // namespace nereid::verify
