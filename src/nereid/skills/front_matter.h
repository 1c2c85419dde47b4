// The front matter of a skill: the part of TOML that holds texts and lists of texts. It is read by hand,
// because it is hostile and the library that reads run files asserts on some texts that are no TOML.
//
//   name = "a"                # basic strings, with \" \\ \t \n \uXXXX
//   tags = ["b", "c"]         # lists may go over several lines
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::skills {

struct FrontMatterValue {
  size_t line = 0;
  bool list = false;
  std::vector<std::string> texts{};  // one of a text
};

// `first_line`: the number of the text's first line. An Error (blamed on the input) names file and line, what
// was expected and what was found.
Result<std::map<std::string, FrontMatterValue>> parse_front_matter(std::string_view text,
                                                                   const std::string& file,
                                                                   size_t first_line);

// As a TOML string.
std::string toml_text(std::string_view text);

}  // namespace nereid::skills
