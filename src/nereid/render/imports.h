// The import statements of a Python file, in the order and the form that isort gives them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::render {

class Imports {
 public:
  // A statement, of one line or of several. What is no plain import (`import *`, one with a comment) is kept
  // as it is.
  void add(const std::string& statement);

  // Sections of the standard library, of packages and of relative imports, a blank line between them; ends
  // with a line's end, empty where there is nothing. Names that stand nowhere in `code` are left out if they
  // come from torch, triton or the standard library; any other import may do something by itself (register
  // operators), and is marked instead.
  std::string text(std::string_view code) const;

 private:
  struct Name {
    std::string name, alias;  // alias: empty where there is none
    auto operator<=>(const Name&) const = default;
  };
  bool add_parsed(const std::string& statement);

  std::set<Name> modules_;                      // import name as alias
  std::map<std::string, std::set<Name>> from_;  // by module
  std::vector<std::string> others_;
};

}  // namespace nereid::render
