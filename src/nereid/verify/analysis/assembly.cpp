#include "nereid/verify/analysis/assembly.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "nereid/base/text.h"

namespace nereid::verify {
namespace {

using std::string_view;

// First words of instructions; what follows after a dot are types and rounding modes.
constexpr auto kInstructions = std::to_array<string_view>(
    {"abs", "add", "and", "bfe",  "bfi",  "brev", "clz",   "copysign", "cos", "cvt",
     "div", "ex2", "fma", "lg2",  "lop3", "mad",  "max",   "min",      "mov", "mul",
     "neg", "not", "or",  "popc", "prmt", "rcp",  "rsqrt", "selp",     "set", "setp",
     "shf", "shl", "shr", "sin",  "slct", "sqrt", "sub",   "tanh",     "xor"});

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<string_view> words(string_view text) {
  std::vector<string_view> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) out.push_back(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

// $3, 42, 0x3f800000, 0f3F800000, or a register declared in the same text.
bool is_operand(string_view word, const std::set<std::string, std::less<>>& registers) {
  if (word.starts_with("$")) return word.size() > 1;
  if (std::isdigit(static_cast<unsigned char>(word[0]))) return true;
  return registers.contains(word);
}

}  // namespace

std::optional<std::string> forbidden_instruction(string_view assembly) {
  std::set<std::string, std::less<>> registers;
  std::string statement;
  std::optional<std::string> found;
  const auto finish = [&] {
    const string_view text = trimmed(statement);
    if (text.empty() || found) return;
    if (text == "griddepcontrol.wait" || text == "griddepcontrol.launch_dependents") return;
    const auto parts = words(text);
    const auto refuse = [&] { found = std::string(text); };
    if (parts.empty() || text.find_first_of("[]@:\"\\") != string_view::npos) return refuse();
    if (parts[0] == ".reg") {
      for (size_t i = 1; i < parts.size(); ++i)
        if (parts[i][0] != '.') registers.emplace(parts[i]);
      return;
    }
    const string_view name = parts[0].substr(0, parts[0].find('.'));
    if (std::find(kInstructions.begin(), kInstructions.end(), name) == kInstructions.end()) return refuse();
    for (size_t i = 1; i < parts.size(); ++i)
      if (!is_operand(parts[i], registers)) return refuse();
  };
  for (size_t i = 0; i < assembly.size(); ++i) {
    const string_view rest = assembly.substr(i);
    if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size() - 1);
    } else if (rest.starts_with("/*")) {
      const size_t end = rest.find("*/");
      if (end == string_view::npos) return std::string(rest);
      i += end + 1;
    } else if (rest[0] == ';' || ((rest[0] == '{' || rest[0] == '}') && trimmed(statement).empty())) {
      finish();
      statement.clear();
    } else {
      statement += rest[0];
    }
  }
  finish();
  return found;
}

}  // namespace nereid::verify
