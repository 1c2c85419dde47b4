#include "nereid/render/imports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "nereid/render/line_breaks.h"
#include "nereid/render/python_tokens.h"

namespace nereid::render {
namespace {

using std::string;
using std::string_view;

constexpr string_view kStandardLibrary =
#include "nereid/render/standard_library.inc"
    ;

string lower(string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

string root_of(string_view module) { return string(module.substr(0, module.find('.'))); }

enum class Section { kFuture, kStandard, kPackage, kRelative };

Section section_of(string_view module) {
  if (module == "__future__") return Section::kFuture;
  if (module.starts_with('.')) return Section::kRelative;
  const string name = " " + root_of(module) + " ", all = " " + string(kStandardLibrary);
  return all.find(name) != all.npos ? Section::kStandard : Section::kPackage;
}

bool only_defines_names(string_view module) {
  const string root = root_of(module);
  return section_of(module) == Section::kStandard || root == "torch" || root == "triton";
}

// As isort sorts what is imported from one module: constants, classes, everything else.
std::tuple<int, string, string> member_key(const string& name) {
  const bool upper = std::ranges::none_of(name, [](unsigned char c) { return std::islower(c); });
  const bool letter = std::isupper(static_cast<unsigned char>(name.front())) != 0;
  const int kind = upper && letter && name.size() > 1 ? 0 : letter ? 1 : 2;
  return {kind, lower(name), name};
}

// Names, and the words of texts: a hint may be a text.
std::set<string, std::less<>> words_of(string_view code) {
  std::set<string, std::less<>> words;
  string_view before;
  for (const string_view token : tokens_of(code)) {
    const bool text = token.front() == '"' || token.front() == '\'';
    if (text && token.size() > 2)
      words.merge(words_of(token.substr(1, token.size() - 2)));
    else if (name_character(token.front()) && before != ".")
      words.emplace(token);
    before = token;
  }
  return words;
}

// A printed statement with what it is sorted by: section, `import` before `from`, module, first name.
struct Statement {
  Section section;
  bool from;
  string module;
  std::tuple<int, string, string> first;
  string text;
};

string from_text(const string& module, const std::vector<string>& names, bool unused) {
  const string mark = unused ? "  # noqa: F401" : "";
  const string line = fmt::format("from {} import {}{}\n", module, fmt::join(names, ", "), mark);
  if (line.size() <= kLineWidth + 1) return line;
  return fmt::format("from {} import ({}\n    {},\n)\n", module, mark, fmt::join(names, ",\n    "));
}

}  // namespace

void Imports::add(const string& statement) {
  if (add_parsed(statement)) return;
  string text = statement;
  while (text.ends_with('\n')) text.pop_back();
  if (!text.empty() && std::ranges::find(others_, text) == others_.end()) others_.push_back(text);
}

bool Imports::add_parsed(const string& statement) {
  std::vector<string_view> tokens;
  for (const string_view token : tokens_of(statement)) {
    if (token.starts_with('#') || token == "*" || token == ";" || token == "\\") return false;
    if (token != " " && token != "\n" && token != "(" && token != ")") tokens.push_back(token);
  }
  size_t at = 0;
  const auto next = [&] { return at < tokens.size() ? tokens[at++] : string_view(); };
  const auto dotted = [&] {
    string name;
    while (at < tokens.size() && tokens[at] != "import" && tokens[at] != "as" && tokens[at] != ",")
      name += tokens[at++];
    return name;
  };
  const string_view keyword = next();
  const bool from = keyword == "from";
  if (!from && keyword != "import") return false;
  const string module = from ? dotted() : "";
  if (from && next() != "import") return false;
  std::set<Name> names;
  while (at < tokens.size()) {
    Name name{dotted(), ""};
    if (name.name.empty()) return false;
    if (at < tokens.size() && tokens[at] == "as") name.alias = (++at, next());
    if (name.alias == name.name) name.alias.clear();
    names.insert(std::move(name));
    if (at < tokens.size() && next() != ",") return false;
  }
  if (names.empty()) return false;
  for (const Name& name : names) {
    const size_t dot = name.name.rfind('.');
    if (from)
      from_[module].insert(name);
    else if (dot != name.name.npos && name.name.substr(dot + 1) == name.alias)  // import torch.nn as nn
      from_[name.name.substr(0, dot)].insert({name.alias, ""});
    else
      modules_.insert(name);
  }
  return true;
}

string Imports::text(string_view code) const {
  const auto words = words_of(code);
  std::vector<Statement> statements;
  for (const Name& module : modules_) {
    const bool used = words.contains(module.alias.empty() ? root_of(module.name) : module.alias);
    if (!used && only_defines_names(module.name)) continue;
    const string as = module.alias.empty() ? "" : " as " + module.alias;
    statements.push_back({section_of(module.name), false, lower(module.name), member_key(module.name),
                          fmt::format("import {}{}{}\n", module.name, as, used ? "" : "  # noqa: F401")});
  }
  for (const auto& [module, names] : from_) {
    std::vector<string> plain;
    bool unused = false;
    for (const Name& name : names) {
      const bool used = section_of(module) == Section::kFuture ||
                        words.contains(name.alias.empty() ? name.name : name.alias);
      if (!used && only_defines_names(module)) continue;
      if (name.alias.empty()) {
        plain.push_back(name.name);
        unused = unused || !used;
      } else {
        statements.push_back({section_of(module), true, lower(module), member_key(name.name),
                              from_text(module, {name.name + " as " + name.alias}, !used)});
      }
    }
    std::ranges::sort(plain, {}, member_key);
    if (!plain.empty())
      statements.push_back({section_of(module), true, lower(module), member_key(plain.front()),
                            from_text(module, plain, unused)});
  }
  std::ranges::stable_sort(
      statements, {}, [](const Statement& s) { return std::tuple(s.section, s.from, s.module, s.first); });
  string text;
  for (size_t i = 0; i < statements.size(); ++i)
    text += (i > 0 && statements[i - 1].section != statements[i].section ? "\n" : "") + statements[i].text;
  for (const string& other : others_) text += other + "\n";
  return text;
}

}  // namespace nereid::render
