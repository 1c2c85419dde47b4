#include "nereid/compiler/output/function_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
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

constexpr int kUnary = 8, kPower = 9, kAtom = 10;  // how tightly what is no operator of two binds

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

namespace {

// A line's tokens, without spaces and comments; a hole (ir/size.h) is one.
std::vector<string> tokens_of_line(string_view line) {
  std::vector<string> tokens;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = std::min(line.find('{', at), line.size());
    for (const string_view word : words_of_line(line.substr(at, begin - at))) {
      const bool doubled =
          !tokens.empty() && word.size() == 1 && tokens.back().size() == 1 &&
          (word == "=" ? string_view("<>=!").find(tokens.back()) != string_view::npos
                       : word == tokens.back() && string_view("*/<>").find(word) != word.npos);
      if (doubled)
        tokens.back() += word;
      else
        tokens.emplace_back(word);
    }
    at = begin == line.size() ? begin : line.find('}', begin) + 1;
    if (at > begin) tokens.emplace_back(line.substr(begin, at - begin));
  }
  return tokens;
}

// How tightly a binary operator binds; 0: it is none.
int binding_of(string_view token) {
  static constexpr std::array<string_view, 8> kLevels = {"",    " < > <= >= == != ", " | ",   " ^ ",
                                                         " & ", " << >> ",           " + - ", " * / // % @ "};
  for (int level = 1; level < static_cast<int>(kLevels.size()); ++level)
    if (kLevels[static_cast<size_t>(level)].find(fmt::format(" {} ", token)) != string_view::npos)
      return level;
  return token == "**" ? kPower : 0;
}

bool ends_operand(string_view token) {
  const char last = token.back();
  return render::name_character(last) || last == ')' || last == ']' || last == '}' || last == '"';
}

// Of the operator that binds least.
int binding_of(const std::vector<string>& expression) {
  int depth = 0, least = kAtom;
  for (size_t i = 0; i < expression.size(); ++i) {
    const string& token = expression[i];
    if (token == ")" || token == "]") --depth;
    if (depth == 0) {
      const bool binary = i > 0 && ends_operand(expression[i - 1]);
      const int level = binding_of(token);
      if (level > 0 || token == "~") least = std::min(least, binary ? level : kUnary);
    }
    if (token == "(" || token == "[") ++depth;
  }
  return least;
}

// Whether an expression needs brackets where the token at `at` stands.
bool needs_brackets(const std::vector<string>& expression, const std::vector<string>& line, size_t at) {
  const int own = binding_of(expression);
  const string before = at > 0 ? line[at - 1] : "", after = at + 1 < line.size() ? line[at + 1] : "";
  if (after == "." || after == "[" || after == "(" || after == "**") return own < kAtom;
  if (const int left = binding_of(before); left > 0 || before == "~") {
    const bool binary = at > 1 && ends_operand(line[at - 2]);
    if (binary ? own <= left : own <= kUnary) return true;
  }
  const int right = binding_of(after);
  return right > 0 && (right == 1 ? own <= right : own < right);
}

// "add" of "add_12".
bool is_operator_name(string_view name) {
  static const std::set<string, std::less<>> names = {"abs",
                                                      "acos",
                                                      "acosh",
                                                      "add",
                                                      "and",
                                                      "asin",
                                                      "atan",
                                                      "atan2",
                                                      "atanh",
                                                      "bitwise_and",
                                                      "bitwise_not",
                                                      "bitwise_or",
                                                      "ceil",
                                                      "clamp",
                                                      "cos",
                                                      "cosh",
                                                      "div",
                                                      "divide",
                                                      "eq",
                                                      "equal",
                                                      "erf",
                                                      "erfc",
                                                      "exp",
                                                      "exp2",
                                                      "expm1",
                                                      "floor",
                                                      "fmod",
                                                      "ge",
                                                      "gt",
                                                      "isinf",
                                                      "le",
                                                      "less",
                                                      "log",
                                                      "log1p",
                                                      "log2",
                                                      "lt",
                                                      "magnitude",
                                                      "masked_fill",
                                                      "maximum",
                                                      "minimum",
                                                      "mul",
                                                      "multiply",
                                                      "ne",
                                                      "neg",
                                                      "negate",
                                                      "not_equal",
                                                      "or",
                                                      "pow",
                                                      "power",
                                                      "reciprocal",
                                                      "relu",
                                                      "remainder",
                                                      "rounded",
                                                      "rsqrt",
                                                      "rsub",
                                                      "sigmoid",
                                                      "sin",
                                                      "sinh",
                                                      "sqrt",
                                                      "sub",
                                                      "subtract",
                                                      "tan",
                                                      "tanh",
                                                      "trunc",
                                                      "where",
                                                      "logical_not",
                                                      "logical_and",
                                                      "logical_or",
                                                      "exclusive_or",
                                                      "less_or_equal",
                                                      "integer_divide",
                                                      "square"};
  while (!name.empty() && render::is_decimal(name.back())) name.remove_suffix(1);
  if (name.ends_with('_')) name.remove_suffix(1);
  return names.contains(name);
}

// Whether the order among other statements matters, or it is a step of its own.
bool is_statement(const std::vector<string>& expression) {
  static const std::set<string, std::less<>> calls = {
      "load",   "dot",        "reduce",           "sum",        "max",
      "min",    "cumsum",     "associative_scan", "program_id", "arange",
      "gather", "dot_tf32x3", "running_products"};
  return std::ranges::any_of(expression, [&](const string& token) {
    return calls.contains(token) || token.find("atomic") != token.npos || token.find("asm") != token.npos;
  });
}

// Where a line's only word `name` that is no attribute begins.
size_t place_of(string_view line, string_view name) {
  for (size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    const bool begins = at > 0 && line[at - 1] != '.' && !render::name_character(line[at - 1]);
    const size_t end = at + name.size();
    if (begins && (end == line.size() || !render::name_character(line[end]))) return at;
  }
  return line.npos;
}

// A kernel's lines while values are moved to where they are read.
class Expressions {
 public:
  explicit Expressions(string_view function) : lines_(split_lines(function)) {
    for (const string& line : lines_) {
      tokens_.push_back(line.starts_with('@') || line.starts_with("def ") ? std::vector<string>{}
                                                                          : tokens_of_line(line));
      const Targets targets = targets_of(words_of_line(line));
      for (const string_view name : targets.names) ++assigned_[string(name)];
    }
  }

  string run() {
    for (size_t i = 0; i < lines_.size(); ++i)
      if (const auto use = use_of(i)) move(i, use->first, use->second);
    std::vector<string> kept;
    for (size_t i = 0; i < lines_.size(); ++i)
      if (!gone_.contains(i)) kept.push_back(lines_[i]);
    return joined_lines(kept);
  }

 private:
  static constexpr size_t kMaxTokens = 26, kMaxBrackets = 3, kFurthest = 8;

  // The line and the token that reads what line `at` makes, if that may be written there.
  std::optional<std::pair<size_t, size_t>> use_of(size_t at) const {
    const auto& tokens = tokens_[at];
    if (tokens.size() < 3 || tokens[1] != "=" || !is_operator_name(tokens[0]) || assigned_.at(tokens[0]) != 1)
      return std::nullopt;
    const std::vector<string> expression(tokens.begin() + 2, tokens.end());
    const auto changes = [&](const string& token) {
      const auto found = assigned_.find(token);
      return found != assigned_.end() && found->second > 1;
    };
    if (is_statement(expression) || std::ranges::any_of(expression, changes)) return std::nullopt;
    std::optional<std::pair<size_t, size_t>> use;
    for (size_t i = 0; i < lines_.size(); ++i)
      for (size_t t = 0; t < tokens_[i].size(); ++t) {
        const bool attribute = t > 0 && tokens_[i][t - 1] == ".";
        if (i == at || gone_.contains(i) || tokens_[i][t] != tokens[0] || attribute) continue;
        if (use) return std::nullopt;
        use = {i, t};
      }
    if (!use || use->first < at || use->first > at + kFurthest + passed(at, use->first)) return std::nullopt;
    const auto& line = tokens_[use->first];
    const bool keyword = use->second + 1 < line.size() && line[use->second + 1] == "=";
    if (line.size() < 3 || line[1] != "=" || keyword || use->second < 2)
      return std::nullopt;  // tl.store, a header
    const bool comments = (lines_[at] + lines_[use->first]).find('#') != string::npos;
    if (comments || !same_block(at, use->first)) return std::nullopt;
    const size_t length = line.size() + expression.size();
    return length <= kMaxTokens && brackets(line, use->second) + deepest(expression) <= kMaxBrackets
               ? use
               : std::nullopt;
  }

  size_t passed(size_t from, size_t to) const {
    size_t count = 0;
    for (size_t i = from; i < to; ++i) count += gone_.contains(i) ? 1 : 0;
    return count;
  }
  bool same_block(size_t from, size_t to) const {
    const size_t indent = depth_of(lines_[from]);
    for (size_t i = from; i <= to; ++i)
      if (!gone_.contains(i) && depth_of(lines_[i]) != indent) return false;
    return true;
  }
  static size_t brackets(const std::vector<string>& line, size_t at) {
    size_t depth = 0;
    for (size_t i = 0; i < at; ++i) {
      if (line[i] == "(" || line[i] == "[") ++depth;
      if (line[i] == ")" || line[i] == "]") --depth;
    }
    return depth;
  }
  static size_t deepest(const std::vector<string>& expression) {
    size_t most = 0;
    for (size_t i = 0; i < expression.size(); ++i) most = std::max(most, brackets(expression, i));
    return most;
  }

  void move(size_t from, size_t to, size_t at) {
    const std::vector<string> expression(tokens_[from].begin() + 2, tokens_[from].end());
    string text = lines_[from].substr(lines_[from].find(" = ") + 3);
    if (needs_brackets(expression, tokens_[to], at)) text = "(" + text + ")";
    lines_[to].replace(place_of(lines_[to], tokens_[from][0]), tokens_[from][0].size(), text);
    tokens_[to] = tokens_of_line(lines_[to]);
    gone_.insert(from);
  }

  std::vector<string> lines_;
  std::vector<std::vector<string>> tokens_;
  std::map<string, int> assigned_;
  std::set<size_t> gone_;
};

}  // namespace

string with_expressions(string_view function) { return Expressions(function).run(); }

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
