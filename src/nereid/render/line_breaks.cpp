#include "nereid/render/line_breaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "nereid/render/python_tokens.h"

namespace nereid::render {
namespace {

using std::string;
using std::string_view;
using Tokens = std::vector<string_view>;

constexpr size_t kIndent = 4;
constexpr size_t kShortItem = 44, kManyItems = 7;  // of a list that is filled

bool opens(string_view token) { return token == "(" || token == "[" || token == "{"; }
bool closes(string_view token) { return token == ")" || token == "]" || token == "}"; }
bool is_quote(char c) { return c == '"' || c == '\''; }

// How much less than others an operator binds: the first of these that is there breaks a line.
constexpr std::array<string_view, 8> kBinding = {
    "or", "and", "in is not", "< > <= >= == !=", "|", "^", "&", "+ -"};
constexpr string_view kTightest = "* / // % @";

bool is_one_of(string_view operators, string_view token) {
  for (size_t at = 0; at < operators.size();) {
    const size_t end = std::min(operators.find(' ', at), operators.size());
    if (operators.substr(at, end - at) == token) return true;
    at = end + 1;
  }
  return false;
}

// Tokens with operators of two characters as one and without spaces; each has its place in the text.
struct Placed {
  size_t begin = 0;
  string_view text;
  int depth = 0;  // brackets around it; of a bracket those around it
  size_t end() const { return begin + text.size(); }
};

std::vector<Placed> placed(string_view code) {
  std::vector<Placed> made;
  size_t at = 0;
  int depth = 0;
  for (const string_view token : tokens_of(code)) {
    const size_t begin = at;
    at += token.size();
    if (token == " ") continue;
    if (closes(token)) --depth;
    const bool doubled = !made.empty() && made.back().end() == begin && made.back().text.size() == 1 &&
                         (token == "=" ? string_view("<>=!").find(made.back().text) != string_view::npos
                                       : token == made.back().text && (token == "/" || token == "*"));
    if (doubled)
      made.back().text = code.substr(made.back().begin, 2);
    else
      made.push_back({begin, token, depth});
    if (opens(token)) ++depth;
  }
  return made;
}

// Whether an operator could follow the token.
bool is_operand(string_view token) {
  static constexpr std::array<string_view, 12> kWords = {"or",     "and",  "in",    "is",     "not",   "if",
                                                         "return", "else", "yield", "lambda", "await", "for"};
  if (std::ranges::find(kWords, token) != kWords.end()) return false;
  return closes(token) || name_character(token.front()) || is_quote(token.front());
}

string trimmed(string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return string(text);
}

// The parts of `code` between commas that no bracket is around; the last may be empty.
std::vector<string> items_of(string_view code) {
  std::vector<string> items;
  size_t begin = 0;
  for (const Placed& token : placed(code))
    if (token.depth == 0 && token.text == ",") {
      items.push_back(trimmed(code.substr(begin, token.begin - begin)));
      begin = token.end();
    }
  items.push_back(trimmed(code.substr(begin)));
  return items;
}

// The parts between the operators that bind least, each but the first with its operator in front; one part
// where there is none.
std::vector<string> operands_of(string_view code) {
  const std::vector<Placed> tokens = placed(code);
  const auto parts_at = [&](string_view operators) {
    std::vector<string> parts;
    size_t begin = 0;
    for (size_t i = 1; i < tokens.size(); ++i)
      if (tokens[i].depth == 0 && is_one_of(operators, tokens[i].text) && is_operand(tokens[i - 1].text)) {
        parts.push_back(trimmed(code.substr(begin, tokens[i].begin - begin)));
        begin = tokens[i].begin;
      }
    parts.push_back(trimmed(code.substr(begin)));
    return parts;
  };
  for (const string_view operators : kBinding)
    if (auto parts = parts_at(operators); parts.size() > 1) return parts;
  return parts_at(kTightest);
}

// A statement, or a part of one, cut at a pair of brackets.
struct Cut {
  string_view head, inside, tail;  // the brackets belong to head and tail
};

// Of ").to(tl.float32)" and ")[:, None]": whether what opens at `open` goes on from brackets that close.
bool goes_on(const std::vector<Placed>& tokens, size_t open) {
  if (open == 0) return false;
  if (closes(tokens[open - 1].text)) return true;
  return open > 2 && tokens[open - 2].text == "." && closes(tokens[open - 3].text);
}

// At the last pair that no bracket is around and that holds something; of a call that goes on with a short
// pair, f(...).to(tl.float32), at the call's.
std::optional<Cut> last_brackets(string_view code) {
  constexpr size_t kShort = 16;
  const std::vector<Placed> tokens = placed(code);
  std::optional<Cut> found;
  for (size_t close = tokens.size(); close-- > 0;) {
    if (!closes(tokens[close].text)) continue;
    size_t open = close;
    while (open > 0 && !(opens(tokens[open].text) && tokens[open].depth == tokens[close].depth)) --open;
    if (!opens(tokens[open].text)) return std::nullopt;
    if (tokens[close].depth == 0 && close > open + 1) {
      const Cut cut{code.substr(0, tokens[open].end()),
                    code.substr(tokens[open].end(), tokens[close].begin - tokens[open].end()),
                    code.substr(tokens[close].begin)};
      if (found && cut.inside.size() <= found->inside.size()) return found;
      if (cut.inside.size() > kShort || !goes_on(tokens, open)) return cut;
      found = cut;
    }
    close = open;
  }
  return found;
}

// The right side of an assignment, or what is returned, where operators stand outside of its brackets.
std::optional<Cut> bare_right_side(string_view code) {
  const std::vector<Placed> tokens = placed(code);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool assigns = i > 0 && tokens[i].depth == 0 && tokens[i].text == "=";
    if (!assigns && !(i == 0 && tokens[i].text == "return")) continue;
    const size_t begin = std::min(tokens[i].end() + 1, code.size());
    const string_view right = code.substr(begin);
    if (operands_of(right).size() < 2 || items_of(right).size() > 1) return std::nullopt;
    return Cut{code.substr(0, begin), right, ""};
  }
  return std::nullopt;
}

class Breaker {
 public:
  explicit Breaker(size_t width) : width_(width) {}

  void statement(string_view code, size_t indent) {
    const size_t hash = comment_of(code);
    if (hash != code.npos && indent + code.size() > width_) {
      const string_view comment = code.substr(hash);
      code = code.substr(0, hash);
      while (code.ends_with(' ')) code.remove_suffix(1);
      add_comment(comment, indent);
    }
    if (!code.empty()) broken(code, indent);
  }
  string take() { return std::move(made_); }

 private:
  static size_t comment_of(string_view code) {
    size_t at = 0;
    for (const string_view token : tokens_of(code)) {
      if (token.starts_with('#')) return at;
      at += token.size();
    }
    return code.npos;
  }

  void add(string_view code, size_t indent) { made_ += string(indent, ' ') + string(code) + "\n"; }
  void add_comment(string_view comment, size_t indent) {
    const string text = filled(comment, "# ", width_ - indent);
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      add(string_view(text).substr(at, end - at), indent);
      at = end + 1;
    }
  }
  bool fits(string_view code, size_t indent) const { return indent + code.size() <= width_; }

  void broken(string_view code, size_t indent) {
    if (fits(code, indent)) return add(code, indent);
    if (const auto bare = bare_right_side(code))
      return pieces({string(bare->head) + "(", bare->inside, ")"}, indent);
    if (const auto cut = last_brackets(code))
      return pieces({string(cut->head), cut->inside, cut->tail}, indent);
    add(code, indent);
  }

  struct Pieces {
    string head;
    string_view inside, tail;
  };
  void pieces(const Pieces& cut, size_t indent) {
    // A head that is too long by itself is broken in its own brackets, its open one apart.
    if (fits(cut.head, indent) || !last_brackets(cut.head))
      add(cut.head, indent);
    else
      broken(cut.head, indent);
    inside(trimmed(cut.inside), indent + kIndent);
    broken(cut.tail, indent);
  }

  void inside(const string& code, size_t indent) {
    std::vector<string> items = items_of(code);
    const bool trailing = items.size() > 1 && items.back().empty();
    if (trailing) items.pop_back();
    const bool one = items.size() == 1 && !trailing;
    if (fits(code, indent) && !trailing) return add(code, indent);
    if (one) return operands(code, indent, "");
    const bool fill = items.size() >= kManyItems && std::ranges::all_of(items, [](const string& item) {
                        return item.size() <= kShortItem && item.find_first_of("({") == item.npos;
                      });
    if (fill) {
      string line;
      for (const string& item : items) {
        if (!line.empty() && !fits(line + " " + item + ",", indent)) add(std::exchange(line, ""), indent);
        line += (line.empty() ? "" : " ") + item + ",";
      }
      return add(line, indent);
    }
    for (const string& item : items) operands(item, indent, item.starts_with('*') ? "" : ",");
  }

  // What stands in brackets already, with `end` behind it.
  void operands(const string& code, size_t indent, const char* end) {
    if (fits(code + end, indent)) return add(code + end, indent);
    const std::vector<string> parts = operands_of(code);
    if (parts.size() == 1) return broken(code + end, indent);
    for (size_t i = 0; i < parts.size(); ++i) broken(parts[i] + (i + 1 == parts.size() ? end : ""), indent);
  }

  size_t width_;
  string made_;
};

// Where texts of several lines stand: pairs of their begin and their end.
std::vector<std::pair<size_t, size_t>> long_texts(string_view code) {
  std::vector<std::pair<size_t, size_t>> texts;
  size_t at = 0;
  for (const string_view token : tokens_of(code)) {
    if (is_quote(token.front()) && token.find('\n') != token.npos) texts.emplace_back(at, at + token.size());
    at += token.size();
  }
  return texts;
}

}  // namespace

string filled(string_view text, string_view indent, size_t width) {
  string lines, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const string_view word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = string(indent) + string(word);
    } else {
      line += (line.empty() ? "" : " ") + string(word);
    }
  }
  return lines + line;
}

string without_line_breaks(string_view text) {
  string made;
  int depth = 0;
  bool broken = false;  // at a line's end in brackets
  for (const string_view token : tokens_of(text)) {
    if (token == "\n" && depth > 0) {
      broken = true;
      continue;
    }
    if (broken && token == " ") continue;
    if (broken) {
      const bool first = !made.empty() && opens(string_view(made).substr(made.size() - 1));
      if (closes(token) && made.ends_with(','))
        made.pop_back();
      else if (!closes(token) && !first)
        made += ' ';
    }
    broken = token.starts_with('#') && depth > 0;
    if (broken) continue;  // a comment would end the statement
    if (opens(token)) ++depth;
    if (closes(token)) --depth;
    made += token;
  }
  return made;
}

string with_line_breaks(string_view text, size_t width) {
  string made;
  const auto texts = long_texts(text);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at, end = std::min(text.find('\n', at), text.size());
    const string_view line = text.substr(at, end - at);
    at = end + 1;
    const bool in_text =
        std::ranges::any_of(texts, [&](const auto& each) { return each.first < end && begin < each.second; });
    if (line.size() <= width || in_text) {
      made += string(line) + "\n";
      continue;
    }
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    Breaker breaker(width);
    breaker.statement(line.substr(indent), indent);
    made += breaker.take();
  }
  if (!text.ends_with('\n') && made.ends_with('\n')) made.pop_back();
  return made;
}

}  // namespace nereid::render
