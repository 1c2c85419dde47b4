#include "nereid/compiler/output/function_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "nereid/render/python_tokens.h"

namespace nereid::compiler {
namespace {

using std::string;
using std::string_view;

std::vector<string> split_lines(string_view text) {
  std::vector<string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

string joined_lines(const std::vector<string>& lines) {
  string text;
  for (const string& line : lines) text += line + "\n";
  return text;
}

size_t depth_of(string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// A line's tokens that mean something.
std::vector<string_view> words_of_line(string_view line) {
  std::vector<string_view> words;
  for (const string_view token : render::tokens_of(line))
    if (token != " " && !token.starts_with('#')) words.push_back(token);
  return words;
}

// "a" and "b" of "a, b = f(x)", and how many tokens these are; nothing of any other statement.
struct Targets {
  std::vector<string_view> names;
  size_t tokens = 0;
};
Targets targets_of(const std::vector<string_view>& words) {
  Targets targets;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (!render::name_character(words[i].front()) || render::is_decimal(words[i].front())) return {};
    targets.names.push_back(words[i]);
    if (words[i + 1] == "=")
      return i + 2 < words.size() && words[i + 2] != "=" ? (targets.tokens = i + 1, targets) : Targets{};
    if (words[i + 1] != ",") return {};
  }
  return {};
}

bool has_effect(string_view line) {
  static constexpr std::array<string_view, 6> kEffects = {"store",   "volatile",   "atomic",
                                                          "barrier", "inline_asm", "assert"};
  return std::ranges::any_of(kEffects, [&](string_view each) { return line.find(each) != line.npos; });
}

// Names that some statement reads.
std::set<string, std::less<>> names_read(const std::vector<string>& lines) {
  std::set<string, std::less<>> read;
  for (const string& line : lines) {
    const std::vector<string_view> words = words_of_line(line);
    int depth = 0;
    for (size_t i = targets_of(words).tokens; i < words.size(); ++i) {
      if (words[i] == "(" || words[i] == "[") ++depth;
      if (words[i] == ")" || words[i] == "]") --depth;
      const bool attribute = i > 0 && words[i - 1] == ".";
      const bool keyword = depth > 0 && i + 2 < words.size() && words[i + 1] == "=" && words[i + 2] != "=";
      if (!attribute && !keyword) read.emplace(words[i]);
    }
  }
  return read;
}

// Whether a line is all that there is in its block.
bool is_alone(const std::vector<string>& lines, size_t at) {
  const size_t depth = depth_of(lines[at]);
  return at > 0 && depth_of(lines[at - 1]) < depth &&
         (at + 1 == lines.size() || depth_of(lines[at + 1]) < depth);
}

}  // namespace

static string without_names(string_view function, bool drop) {
  std::vector<string> lines = split_lines(function);
  for (bool changed = true; changed;) {
    changed = false;
    const auto read = names_read(lines);
    for (size_t i = lines.size(); i-- > 0;) {
      const std::vector<string_view> words = words_of_line(lines[i]);
      const Targets targets = targets_of(words);
      if (targets.names.empty() || lines[i].starts_with("def ")) continue;
      const auto unused = [&](string_view name) { return name != "_" && !read.contains(name); };
      if (targets.names.size() == 1) {
        if (!unused(targets.names[0])) continue;
        if (!drop)
          lines[i] = string(depth_of(lines[i]), ' ') + lines[i].substr(lines[i].find('=') + 2);
        else if (has_effect(lines[i]) || is_alone(lines, i))
          continue;
        else
          lines.erase(lines.begin() + static_cast<ptrdiff_t>(i));
        changed = true;
      } else if (std::ranges::any_of(targets.names, unused)) {
        std::vector<string> names;
        for (const string_view name : targets.names) names.push_back(unused(name) ? "_" : string(name));
        const size_t right = lines[i].find('=');
        lines[i] = fmt::format("{}{} {}", string(depth_of(lines[i]), ' '), fmt::join(names, ", "),
                               lines[i].substr(right));
        changed = true;
      }
    }
  }
  return joined_lines(lines);
}

string without_unused(string_view function) { return without_names(function, true); }
string without_unused_names(string_view function) { return without_names(function, false); }

string with_hints(string_view function) {
  const size_t def = function.find("def "), open = function.find('(', def), end = function.find("):\n", open);
  if (def == function.npos || end == function.npos) return string(function);
  const string_view given = function.substr(open + 1, end - open - 1);
  std::vector<string> parameters;
  for (size_t at = 0; at < given.size();) {
    const size_t comma = std::min(given.find(',', at), given.size());
    string parameter(given.substr(at, comma - at));
    parameter.erase(0, std::min(parameter.find_first_not_of(" \n"), parameter.size()));
    while (!parameter.empty() && (parameter.back() == ' ' || parameter.back() == '\n')) parameter.pop_back();
    if (!parameter.empty())
      parameters.push_back(parameter.find(':') == parameter.npos ? parameter + ": tl.tensor" : parameter);
    at = comma + 1;
  }
  return fmt::format("{}({}) -> None:\n{}", function.substr(0, open), fmt::join(parameters, ", "),
                     function.substr(end + 3));
}

}  // namespace nereid::compiler
